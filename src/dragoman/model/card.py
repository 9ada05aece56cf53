"""The card: what an agent says of itself, in the 1.0 shape."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

__all__ = ["BINDINGS", "Capabilities", "Card", "Extension", "Interface", "Provider", "Signature", "Skill"]

BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")


class Interface(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One address of an agent: where, over which binding, in which version."""

    url: str
    protocol_binding: str
    protocol_version: str
    tenant: str = ""


class Provider(Struct, frozen=True, rename="camel"):
    url: str
    organization: str


class Extension(Struct, frozen=True, omit_defaults=True, rename="camel"):
    uri: str = ""
    description: str = ""
    required: bool = False
    params: dict[str, Any] | None = None


class Capabilities(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the agent can do. `None` is "does not say", which readers take as no."""

    streaming: bool | None = None
    push_notifications: bool | None = None
    extensions: tuple[Extension, ...] = ()
    extended_agent_card: bool | None = None


class Skill(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Something the agent is good at, for people and routers to find."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    security_requirements: tuple[dict[str, Any], ...] = ()


class Signature(Struct, frozen=True, omit_defaults=True, rename="camel"):
    protected: str
    signature: str
    header: dict[str, Any] | None = None


class Card(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An agent's self-description."""

    name: str
    description: str
    supported_interfaces: tuple[Interface, ...]
    version: str
    capabilities: Capabilities
    default_input_modes: tuple[str, ...]
    default_output_modes: tuple[str, ...]
    skills: tuple[Skill, ...]
    provider: Provider | None = None
    documentation_url: str | None = None
    security_schemes: dict[str, Any] = field(default_factory=dict)
    security_requirements: tuple[dict[str, Any], ...] = ()
    signatures: tuple[Signature, ...] = ()
    icon_url: str | None = None

    @property
    def streams(self) -> bool:
        return self.capabilities.streaming is True
