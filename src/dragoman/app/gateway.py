"""A gateway: somebody else's agent at an address of ours, in every version and over every binding.

It keeps nothing but what its callers call their tasks (0.1), and that only while it runs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID, uuid5

from msgspec.structs import replace

from ..client import Client, ClientError
from ..model.agent import IDEMPOTENCY_URI
from ..model.card import Card, Extension
from ..model.errors import Fault, error
from ..model.events import Logged, TaskCreated
from ..model.operations.a2a import OPERATIONS, Request, Send
from ..model.peer import Answer, Caller, Peer
from ..model.task import Task
from ..serve import CardForm, Mount, Site, interfaces
from ..wire.losses import lost_in
from ..wire.rest import Rules
from ..wire.versions import Dialect

if TYPE_CHECKING:
    from .listening import Listening

__all__ = ["GATEWAY_URI", "Gateway"]

# The extension under which the card says what is behind the gateway, and what cannot be had through it.
GATEWAY_URI = "urn:dragoman:gateway"
NAMES_MAX = 100_000


class Gateway:
    """`async with Gateway("https://their.agent", port=8430) as gateway: print(gateway.url)`"""

    def __init__(
        self,
        target: str,
        *,
        host: str = "127.0.0.1",
        port: int = 8430,
        url: str = "",
        headers: Mapping[str, str] | None = None,
        trust: Collection[str] = (),
        dialect: str = "",
        binding: str = "",
        timeout_seconds: float | None = None,
        card: CardForm = "by-header",
        rules: Rules | None = None,
    ) -> None:
        self.client = Client(
            target,
            headers=headers,
            trust=trust,
            timeout_seconds=timeout_seconds,
            dialect=dialect,
            binding=binding,
        )
        self._host, self._port, self.url = host, port, url.rstrip("/")
        self._form: CardForm = card
        self._rules = rules or Rules()
        self._listening: Listening | None = None

    async def __aenter__(self) -> Gateway:
        await self.open()
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Read the agent's card, bind, serve, and be ready."""
        from .listening import Listening

        try:
            self._listening = Listening(self._host, self._port)
            theirs = await self.client.card()
            self.url = self.url or self._listening.url
            await self._listening.serve(self.site(theirs))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        if self._listening is not None:
            await self._listening.close()
        await self.client.aclose()

    def site(self, theirs: Card) -> Site:
        """The site at this gateway's address, for an agent with this card."""
        ours = card_through(theirs, self.url, self.client.dialect)
        # How an agent behind us keeps its past is not ours to promise.
        mount = Mount(theirs.name, Naming(self.client), ours, time(), self._form, keeps_history=False)
        return Site([mount], rules=self._rules)


def card_through(theirs: Card, url: str, dialect: Dialect) -> Card:
    """Their card with our addresses, saying what is behind and what is off."""
    off = [row.name for row in OPERATIONS.values() if not dialect.name_of(row)]
    about: dict[str, Any] = {
        "agent": theirs.supported_interfaces[0].url,
        "binding": dialect.binding,
        "version": dialect.version,
        "off": off,
        "lost": lost_in(dialect.binding, dialect.version),
    }
    words = f"A gateway to an agent of version {dialect.version} over {dialect.binding}."
    extension = Extension(GATEWAY_URI, words, params=about)
    abilities = replace(
        theirs.capabilities,
        push_notifications=False,
        extended_agent_card=False,
        extensions=(*theirs.capabilities.extensions, extension),
    )
    # A signature is of the card as it was.
    return replace(theirs, supported_interfaces=interfaces(f"{url}/"), capabilities=abilities, signatures=())


class Naming:
    """A peer whose tasks may be called by names that their callers choose, as 0.1 has it, if it can have none.

    The name goes no further than here: to the agent the task is new, and its own id for it is remembered.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._tasks: dict[tuple[str, str, str], _Named] = {}

    async def call(self, caller: Caller, request: Request) -> Answer:
        name = _name_of(caller, request)
        asked = self._known(caller, name, request) if name else request
        with _told():
            answer = await self._peer.call(_plain(caller), asked)
        if name and isinstance(answer.value, Task):
            self._remember(caller, name, request, answer.value.id)
        return answer

    async def watch(
        self, caller: Caller, request: Request, after: int | None = None
    ) -> AsyncGenerator[Sequence[Logged], None]:
        name = _name_of(caller, request)
        asked = self._known(caller, name, request) if name else request
        with _told():
            async for run in self._peer.watch(_plain(caller), asked, after):
                if name and isinstance(begin := run[0].event, TaskCreated):
                    self._remember(caller, name, request, begin.task.id)
                yield run

    def _known(self, caller: Caller, name: str, request: Request) -> Request:
        """The request with the agent's own id for the task, if the name is known here."""
        task = self._tasks.get((caller.tenant, caller.owner, name))
        if not isinstance(request, Send):
            return replace(request, id=task.id if task else name)
        message, key = request.message, _key_of(caller, request)
        if key:
            # Callers of 0.1 give messages no ids; what is said twice under a key is one message.
            message = replace(message, message_id=str(uuid5(_KEYS, key)))
        # The message that opened the task is said again as it was said then: to no task.
        opens = task is None or (key and key == task.key)
        return replace(request, message=replace(message, task_id="" if opens or task is None else task.id))

    def _remember(self, caller: Caller, name: str, request: Request, id: str) -> None:
        place = (caller.tenant, caller.owner, name)
        if name != id and place not in self._tasks:
            self._tasks[place] = _Named(id, _key_of(caller, request) if isinstance(request, Send) else "")
            if len(self._tasks) > NAMES_MAX:
                del self._tasks[next(iter(self._tasks))]


@contextmanager
def _told() -> Iterator[None]:
    """What goes wrong between here and the agent, in the protocol's words."""
    try:
        yield
    except Fault as wrong:
        raise error("InvalidAgentResponse", f"the agent behind this gateway: {wrong}") from wrong
    except ClientError as wrong:
        raise error("Unavailable", f"the agent behind this gateway: {wrong.message}") from wrong


class _Named(NamedTuple):
    """A task under a name: its own id, and the key of the message that opened it."""

    id: str
    key: str


_KEYS = UUID("6f8b3f5e-4a39-5f0c-9a55-8d0f3a5c1e77")


def _name_of(caller: Caller, request: Request) -> str:
    if not caller.names_tasks:
        return ""
    return request.message.task_id if isinstance(request, Send) else getattr(request, "id", "")


def _key_of(caller: Caller, request: Send) -> str:
    return caller.key or str((request.message.metadata or {}).get(IDEMPOTENCY_URI, ""))


def _plain(caller: Caller) -> Caller:
    return replace(caller, names_tasks=False) if caller.names_tasks else caller
