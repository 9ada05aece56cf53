"""Dragoman lets any two agents work together: serve, call, and keep tasks that survive everything.

The public names are here and are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module as _import
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from .a2a import A2AClient, A2AFailed, A2ATaskResult
    from .agents.agent import Agent
    from .app.gateway import Gateway
    from .app.node import Node
    from .app.remote import RemoteAgent
    from .client import Client
    from .model.card import Card, Extension, Skill
    from .model.errors import AgentError, Fault
    from .model.events import ArtifactChanged, Logged, Replied, StatusChanged, TaskCreated
    from .model.operations.a2a import Page, Send
    from .model.task import Artifact, Message, Part, Role, State, Status, Task
    from .work.turn import Turn

__version__ = "0.1.0"

_HOME = {
    "A2AClient": "a2a",
    "A2AFailed": "a2a",
    "A2ATaskResult": "a2a",
    "Agent": "agents.agent",
    "AgentError": "model.errors",
    "Artifact": "model.task",
    "ArtifactChanged": "model.events",
    "Card": "model.card",
    "Client": "client",
    "Extension": "model.card",
    "Fault": "model.errors",
    "Gateway": "app.gateway",
    "Logged": "model.events",
    "Message": "model.task",
    "Node": "app.node",
    "Page": "model.operations.a2a",
    "Part": "model.task",
    "RemoteAgent": "app.remote",
    "Replied": "model.events",
    "Role": "model.task",
    "Send": "model.operations.a2a",
    "Skill": "model.card",
    "State": "model.task",
    "Status": "model.task",
    "StatusChanged": "model.events",
    "Task": "model.task",
    "TaskCreated": "model.events",
    "Turn": "work.turn",
}

__all__ = [
    "A2AClient",
    "A2AFailed",
    "A2ATaskResult",
    "Agent",
    "AgentError",
    "Artifact",
    "ArtifactChanged",
    "Card",
    "Client",
    "Extension",
    "Fault",
    "Gateway",
    "Logged",
    "Message",
    "Node",
    "Page",
    "Part",
    "RemoteAgent",
    "Replied",
    "Role",
    "Send",
    "Skill",
    "State",
    "Status",
    "StatusChanged",
    "Task",
    "TaskCreated",
    "Turn",
]


def __getattr__(name: str) -> _Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    value = getattr(_import(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
