"""An agent as its author declares it: a name, skills, rules, and the code that takes turns."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

from ..model.agent import IDEMPOTENCY_URI, Conduct
from ..model.card import Capabilities, Card, Extension, Interface, Provider, Skill
from ..work.turn import Driver, Stop
from .function import Function, driver_of

__all__ = ["Agent"]

TEXT = ("text/plain",)


class Agent:
    """Somebody who takes turns.

    `Agent("echo", echo)` with a function of one turn, or as a decorator: `@Agent("echo")`. The
    function may be async or not, return a value, or yield chunks.
    """

    def __init__(
        self,
        name: str,
        take: Function | None = None,
        *,
        description: str = "",
        version: str = "1.0.0",
        skills: Sequence[Skill | str] = (),
        input_modes: Sequence[str] = TEXT,
        output_modes: Sequence[str] = TEXT,
        answers: Literal["task", "message", "either"] = "task",
        streaming: bool = True,
        extensions: Sequence[Extension] = (),
        provider: Provider | None = None,
        documentation_url: str | None = None,
        icon_url: str | None = None,
        stop: Stop | None = None,
        **rules: Any,
    ) -> None:
        if name in ("", ".", "..") or any(c in name for c in "/?#\n"):
            raise ValueError(f"an agent's name is part of its address; {name!r} cannot be one")
        self.description = description
        self.version = version
        self.skills = tuple(_skill(skill) for skill in skills)
        self.extensions = tuple(extensions)
        self.provider = provider
        self.documentation_url = documentation_url
        self.icon_url = icon_url
        # Stops what turns drive outside, by the name under which they said so.
        self.stop = stop
        required = tuple(extension.uri for extension in extensions if extension.required)
        unknown = set(rules) - set(Conduct.__struct_fields__)
        if unknown:
            known = ", ".join(sorted(set(Conduct.__struct_fields__) - {"name"}))
            raise TypeError(f"Agent() does not know {', '.join(sorted(unknown))}; its rules are {known}")
        self.declared = frozenset(rules)
        self.conduct = Conduct(
            name,
            answers=answers,
            streaming=streaming,
            input_modes=tuple(input_modes),
            output_modes=tuple(output_modes),
            extensions_required=required,
            **rules,
        )
        self._drive: Driver | None = None
        if take is not None:
            self(take)

    def __call__(self, take: Function) -> Agent:
        """Give the agent its code: makes `@agent` a decorator."""
        self._drive = driver_of(take)
        if not self.description:
            self.description = (inspect.getdoc(take) or "").partition("\n\n")[0]
        return self

    @property
    def name(self) -> str:
        return self.conduct.name

    @property
    def drive(self) -> Driver:
        if self._drive is None:
            raise ValueError(f"agent {self.name!r} has no code: Agent({self.name!r}, function)")
        return self._drive

    def card(self, interfaces: Sequence[Interface]) -> Card:
        """What the agent says of itself, being at these addresses."""
        skills = self.skills or (Skill(self.name, self.name, self.description or self.name, ("general",)),)
        ours = Extension(
            IDEMPOTENCY_URI, "A message's metadata may carry a key that makes sending it again safe."
        )
        return Card(
            self.name,
            self.description or self.name,
            tuple(interfaces),
            self.version,
            Capabilities(
                streaming=self.conduct.streaming,
                push_notifications=False,
                extensions=(*self.extensions, ours),
                extended_agent_card=False,
            ),
            self.conduct.input_modes,
            self.conduct.output_modes,
            skills,
            provider=self.provider,
            documentation_url=self.documentation_url,
            icon_url=self.icon_url,
        )

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"


def _skill(skill: Skill | str) -> Skill:
    if isinstance(skill, Skill):
        return skill
    return Skill(skill, skill.replace("_", " "), skill.replace("_", " "), ("general",))
