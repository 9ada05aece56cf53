"""How answers look to people and pipes: labelled fields, and blocks that an empty line ends."""

from __future__ import annotations

from typing import Any

import msgspec

from ...core.tasks import INTERRUPTED, TERMINAL
from ...model.card import Card
from ...model.events import ArtifactChanged, Event, Replied, StatusChanged, TaskCreated
from ...model.operations.a2a import Page
from ...model.task import Artifact, Message, Part, State, Task
from .clean import Cleaner, clean
from .options import Shown
from .speech import say

__all__ = ["Text", "exit_of", "size_of"]

# Ours, beyond those of the standard: only with --exit-status.
EXITS = {
    State.COMPLETED: 0,
    State.FAILED: 10,
    State.CANCELED: 11,
    State.REJECTED: 12,
    State.INPUT_REQUIRED: 13,
    State.AUTH_REQUIRED: 14,
}


def exit_of(state: State | None, how: Shown) -> int:
    """A task's state as an exit code. Without --exit-status a task that failed was still told of well."""
    if not how.exits_by_state or state is None:
        return 0
    return EXITS.get(state, 15)


class Text:
    """Fields of one line, and blocks that end with an empty line."""

    def __init__(self, how: Shown) -> None:
        self._how = how
        # The artifact whose text is being written right now, cleaned across its chunks.
        self._open = ""
        self._cleaner = Cleaner()
        self._ends_line = True

    def field(self, label: str, value: object) -> None:
        if self._how.quiet:
            return
        self.close()
        # Whatever it is, it stays on its line.
        say(f"{label}: {' '.join(clean(str(value)).split())}")

    def block(self, label: str, text: str) -> None:
        self.close()
        text = (text if self._how.raw else clean(text)).removesuffix("\n")
        say(text if self._how.quiet else f"{label}:\n{text}\n")

    def message(self, message: Message) -> None:
        self._parts("Message", message.parts)

    def artifact(self, artifact: Artifact) -> None:
        if self._open != artifact.artifact_id:
            self.field("Artifact", artifact.name or artifact.artifact_id)
        if all(part.text is not None for part in artifact.parts):
            self.block("Text", artifact.text)
        else:
            self._parts("Text", artifact.parts)

    def _parts(self, label: str, parts: tuple[Part, ...]) -> None:
        for part in parts:
            if part.text is not None:
                self.block(label, part.text)
            elif part.data is not msgspec.UNSET:
                self.block("Data", msgspec.json.format(msgspec.json.encode(part.data)).decode())
            else:
                self._file(part)

    def _file(self, part: Part) -> None:
        size = part.url if part.url is not None else size_of(len(part.raw or b""))
        self.field("File", f"{part.filename or 'unnamed'} ({part.media_type or 'of unknown type'}, {size})")

    def event(self, event: Event) -> None:
        """One event of a stream, as it comes."""
        match event:
            case TaskCreated(task=task):
                self.field("Task", task.id)
                self.field("Context", task.context_id)
                self.field("State", task.state.word)
                for artifact in task.artifacts:
                    self.artifact(artifact)
                if task.status.message is not None:
                    self.message(task.status.message)
            case StatusChanged(status=status):
                self.field("State", status.state.word)
                if status.message is not None:
                    self.message(status.message)
            case ArtifactChanged():
                self._chunk(event)
            case Replied(message=message):
                self.message(message)
            case _:
                pass

    def _chunk(self, event: ArtifactChanged) -> None:
        update, artifact = event.artifact_update, event.artifact
        texts = [part.text for part in artifact.parts]
        if None in texts:
            self.artifact(artifact)
            return
        if not (update.append and self._open == artifact.artifact_id):
            self.field("Artifact", artifact.name or artifact.artifact_id)
            if not self._how.quiet:
                say("Text:")
            self._open, self._cleaner = artifact.artifact_id, Cleaner()
        text = "".join(text for text in texts if text)
        text = text if self._how.raw else self._cleaner.feed(text)
        if text:
            say(text, end="")
            self._ends_line = text.endswith("\n")

    def close(self) -> None:
        """End the block that is being written."""
        if not self._open:
            return
        self._open = ""
        if not self._ends_line:
            say("")
        if not self._how.quiet:
            say("")
        self._ends_line = True

    def task(self, task: Task, *, with_parts: bool = True) -> None:
        """A task: what it brought, then what it is."""
        if with_parts:
            for artifact in task.artifacts:
                self.artifact(artifact)
            if task.status.message is not None:
                self.message(task.status.message)
        self.field("Task", task.id)
        self.field("Context", task.context_id)
        self.field("State", task.state.word)

    def history(self, task: Task) -> None:
        for message in task.history:
            self.field("From", message.role.name.lower())
            self.message(message)

    def page(self, page: Page) -> None:
        for task in page.tasks:
            self.task(task, with_parts=False)
            self.field("Since", task.status.timestamp)
            say("")
        self.field("Total", page.total_size)
        if page.next_page_token:
            self.field("Next page", page.next_page_token)

    def card(self, card: Card) -> None:
        self.field("Name", card.name)
        self.field("Description", card.description)
        self.field("Version", card.version)
        if card.provider is not None:
            self.field("Provider", f"{card.provider.organization} {card.provider.url}")
        for interface in card.supported_interfaces:
            self.field(
                "Interface", f"{interface.protocol_binding} {interface.protocol_version} {interface.url}"
            )
        able = msgspec.structs.asdict(card.capabilities)
        for name in ("streaming", "push_notifications", "extended_agent_card"):
            self.field(name.replace("_", " ").capitalize(), _yes(able[name]))
        for extension in card.capabilities.extensions:
            self.field("Extension", f"{extension.uri}{' (required)' if extension.required else ''}")
        for name, scheme in card.security_schemes.items():
            self.field("Security", f"{name} {msgspec.json.encode(scheme).decode()}")
        self.field("Takes", ", ".join(card.default_input_modes))
        self.field("Gives", ", ".join(card.default_output_modes))
        for skill in card.skills:
            self.field("Skill", f"{skill.id}: {skill.description}")
            for example in skill.examples:
                self.field("Example", example)
        self.field("Signed", "yes, not verified" if card.signatures else "no")


def _yes(value: Any) -> str:
    return "yes" if value else "no"


def size_of(count: int) -> str:
    """A number of bytes, for people."""
    return (
        f"{count} bytes"
        if count < 10_000
        else f"{count / 1000:.0f} kB"
        if count < 10_000_000
        else f"{count / 1e6:.0f} MB"
    )


def is_at_rest(state: State) -> bool:
    """Whether waiting longer brings nothing without us."""
    return state in TERMINAL or state in INTERRUPTED
