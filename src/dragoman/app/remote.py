"""A remote agent as one of a node's own: found by its card, named and described as it says."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..agents.agent import Agent
from ..agents.remote import Remote
from ..client import Client

__all__ = ["RemoteAgent"]


class RemoteAgent(Agent):
    """`await RemoteAgent.found("https://their.agent")`; `aclose` gives its connections back.

    It is spoken to with this node's credentials, never with a caller's.
    """

    client: Client

    @classmethod
    async def found(
        cls,
        url: str,
        *,
        name: str = "",
        headers: Mapping[str, str] | None = None,
        trust: Collection[str] = (),
        dialect: str = "",
        binding: str = "",
    ) -> RemoteAgent:
        """Read the card, and make an agent of it."""
        # Turns wait as long as the work there takes; what is silent is noticed by its keep-alives.
        client = Client(
            url, headers=headers, trust=trust, timeout_seconds=None, dialect=dialect, binding=binding
        )
        try:
            card = await client.card()
        except BaseException:
            await client.aclose()
            raise
        required = tuple(one.uri for one in card.capabilities.extensions if one.required)
        driver = Remote(client, required)
        agent = cls(
            name or slug(card.name),
            driver,
            description=card.description,
            version=card.version,
            skills=card.skills,
            input_modes=card.default_input_modes or ("*/*",),
            output_modes=card.default_output_modes or ("*/*",),
            answers="either",
            extensions=card.capabilities.extensions,
            provider=card.provider,
            documentation_url=card.documentation_url,
            icon_url=card.icon_url,
            stop=driver.stop,
        )
        agent.client = client
        return agent

    async def aclose(self) -> None:
        await self.client.aclose()


def slug(name: str) -> str:
    """A name as a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "agent"
