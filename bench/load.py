"""The load generator: how many sockets are kept busy, what each answer must contain, and when a cell ends.

One thread, epoll and plain sockets, because it shares the machine with what it measures. Every connection
has one request in flight. When the time is over nothing new is sent, but what is in flight is waited for, so
that the CPU of slow rows is divided by all the work they did. Prints one line of JSON.
"""

import argparse
import gc
import json
import re
import select
import socket
import time

COMPLETED = re.compile(rb'"(?:TASK_STATE_COMPLETED|completed)"').search
EVENT = b"data:"
LAST_CHUNK = b"\r\n0\r\n\r\n"
HEAD = (
    b"POST %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
    b"%bAccept: application/json, text/event-stream\r\n%bContent-Length: %d\r\n\r\n"
)
RPC = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}'
NEWEST = b'{"message":{"messageId":"m-%b","role":"ROLE_USER","parts":[{"text":"%b"}]}}'
KIND = (
    b'{"message":{"kind":"message","messageId":"m-%b","role":"user","parts":[{"kind":"text","text":"%b"}]},'
    b'"configuration":{"blocking":true}}'
)
PROTO = (
    b'{"message":{"messageId":"m-%b","role":"ROLE_USER","content":[{"text":"%b"}]},'
    b'"configuration":{"blocking":true}}'
)
TYPE = b'{"id":"t-%b","message":{"role":"user","parts":[{"type":"text","text":"%b"}]}}'
# By dialect: the A2A-Version it says, its paths below the agent's, its methods, and how it spells a message.
DIALECTS = {
    "1.0 JSON-RPC": (b"1.0", ("", ""), (b"SendMessage", b"SendStreamingMessage"), NEWEST),
    "1.0 REST": (b"1.0", ("/message:send", "/message:stream"), (b"", b""), NEWEST),
    "0.3 JSON-RPC": (b"0.3", ("", ""), (b"message/send", b"message/stream"), KIND),
    "0.3 REST": (b"0.3", ("/v1/message:send", "/v1/message:stream"), (b"", b""), PROTO),
    "0.1 JSON-RPC": (b"", ("", ""), (b"tasks/send", b"tasks/sendSubscribe"), TYPE),
}
NUMBER = b"%09d"


def template(port: int, path: str, chunks: int, key: bool, dialect: str) -> bytes:
    """The request, with a place for its number in the message id, an echo's text and the idempotency key."""
    version, paths, methods, spelled = DIALECTS[dialect]
    text = b"%d" % chunks if chunks else b"echo " + NUMBER
    body = spelled % (NUMBER, text)
    if method := methods[chunks > 0]:
        body = RPC % (method, body)
    else:
        path = path.rstrip("/") + paths[chunks > 0]
    length = len(body.replace(NUMBER, b"000000000"))
    said = b"A2A-Version: " + version + b"\r\n" if version else b""
    # Every row is shown it; ours look.
    more = b"Authorization: Bearer bench-key-0123456789\r\n"
    more += b"Idempotency-Key: bench-" + NUMBER + b"\r\n" if key else b""
    return HEAD % (path.encode(), port, said, more, length) + body


class Unary:
    """One connection that asks, checks the answer, and asks again."""

    __slots__ = ("buffer", "events", "number", "sent", "socket", "text")

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.buffer = b""
        self.events = 1

    def ask(self, request: bytes, number: int, numbers: int) -> None:
        self.text = b"echo %09d" % number
        self.socket.sendall(request % ((number,) * numbers))
        self.sent = time.perf_counter()

    def feed(self, received: bytes) -> bool | None:
        """None while the answer is incomplete; then whether it was right."""
        if self.buffer:
            received = self.buffer + received
        end = received.find(b"\r\n\r\n")
        if end < 0 or not _whole(received, end):
            self.buffer = received
            return None
        self.buffer = b""
        # The text must be there twice when the answer repeats the message; at least once it must.
        is_right = received.startswith(b"HTTP/1.1 200") and COMPLETED(received) is not None
        return is_right and self.text in received


def _whole(received: bytes, end: int) -> bool:
    head = received[:end].lower()
    at = head.find(b"content-length:")
    if at < 0:
        return received.endswith(LAST_CHUNK)
    length = head[at + 15 : at + 30].split(b"\r", 1)[0]
    return len(received) - end - 4 >= int(length)


class Stream:
    """One connection that opens a stream, counts its events to the end, and opens the next."""

    __slots__ = ("chunks", "events", "sent", "socket", "tail")

    def __init__(self, connected: socket.socket, chunks: int) -> None:
        self.socket = connected
        self.chunks = chunks

    def ask(self, request: bytes, number: int, numbers: int) -> None:
        self.tail = b""
        self.events = 0
        self.socket.sendall(request % ((number,) * numbers))
        self.sent = time.perf_counter()

    def feed(self, received: bytes) -> bool | None:
        carry = self.tail[-4:]
        self.events += received.count(EVENT)
        if carry and EVENT in carry + received[:4]:
            self.events += 1
        self.tail = (self.tail + received)[-2048:]
        if not self.tail.endswith(LAST_CHUNK):
            return None
        return self.events >= self.chunks + 2 and COMPLETED(self.tail) is not None


def opened(port: int, count: int) -> list[socket.socket]:
    sockets = []
    for _ in range(count):
        connected = socket.create_connection(("127.0.0.1", port), timeout=90)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets.append(connected)
    return sockets


def drive(connections: dict, request: bytes, seconds: float, count: int, first: int, drain: float) -> dict:
    """Keeps every connection busy for so many seconds, or until so many answers; then waits for the rest."""
    numbers = request.count(NUMBER)
    poll = select.epoll()
    tally = Tally(seconds, count, len(connections), isinstance(next(iter(connections.values())), Unary))
    asked, busy = first, len(connections)
    for fd, connection in connections.items():
        poll.register(fd, select.EPOLLIN)
        connection.ask(request, asked, numbers)
        asked += 1
    while busy:
        ready = poll.poll(1.0)
        if time.perf_counter() > tally.deadline + drain:
            return {"error": f"{busy} answers still missing {drain} s after the end"}
        for fd, _ in ready:
            connection = connections[fd]
            received = connection.socket.recv(262144)
            if not received:
                return {"error": "the connection was closed"}
            before = connection.events
            right = connection.feed(received)
            if right is None:
                tally.part(connection.events - before)
            elif tally.whole(connection, before, right, received) and (not count or asked < first + count):
                connection.ask(request, asked, numbers)
                asked += 1
            else:
                # Its server may close it for idleness while the others are waited for.
                poll.unregister(fd)
                busy -= 1
    return tally.figures()


class Tally:
    """What came in time and what came at all.

    A rate counts only what came in time; a cell of calls lasts until each connection had some answers, so
    that a row that needs a second for one is not measured by its first.
    """

    def __init__(self, seconds: float, count: int, connections: int, is_unary: bool) -> None:
        self.begin = self.end = time.perf_counter()
        self.seconds = seconds
        self.deadline = self.begin + seconds
        self.is_counted = bool(count)
        self.is_unary = is_unary
        self.answers_min = 4 * connections if is_unary and not count else 0
        self.latencies: list[float] = []
        self.timely = self.events = self.wrong = 0
        self.sample = b""

    def part(self, events: int) -> None:
        if events and time.perf_counter() <= self.deadline:
            self.timely += events

    def whole(self, connection: Unary | Stream, before: int, right: bool, received: bytes) -> bool:
        """Takes an answer; says whether it came in time, and so whether the connection asks again."""
        now = time.perf_counter()
        self.latencies.append(now - connection.sent)
        self.events += connection.events
        if not right:
            self.wrong += 1
            self.sample = self.sample or received
        if now > self.deadline and len(self.latencies) > self.answers_min:
            return False
        self.end = now
        self.timely += 1 if self.is_unary else connection.events - before
        return True

    def figures(self) -> dict:
        ordered = sorted(self.latencies)
        span = self.end - self.begin if self.is_counted else max(self.seconds, self.end - self.begin)
        return {
            "answers": len(ordered),
            "events": self.events,
            "per_second": self.timely / span,
            "p50_ms": 1000 * ordered[len(ordered) // 2],
            "p99_ms": 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
            "seconds": span,
            "wrong": self.wrong,
            "sample": self.sample[-300:].decode(errors="replace"),
        }


def main() -> None:
    flags = argparse.ArgumentParser()
    flags.add_argument("--port", type=int, required=True)
    flags.add_argument("--path", default="/")
    flags.add_argument("--connections", type=int, default=16)
    flags.add_argument("--seconds", type=float, default=2.0)
    flags.add_argument("--count", type=int, default=0, help="end after so many answers instead")
    flags.add_argument("--chunks", type=int, default=0, help="streams of so many chunks instead of calls")
    flags.add_argument("--first", type=int, default=1, help="the first message's number")
    flags.add_argument("--drain", type=float, default=60.0)
    flags.add_argument("--key", action="store_true", help="send an Idempotency-Key")
    flags.add_argument("--dialect", choices=DIALECTS, default="1.0 JSON-RPC")
    asked = flags.parse_args()
    sockets = opened(asked.port, asked.connections)
    if asked.chunks:
        connections = {one.fileno(): Stream(one, asked.chunks) for one in sockets}
    else:
        connections = {one.fileno(): Unary(one) for one in sockets}
    request = template(asked.port, asked.path, asked.chunks, asked.key, asked.dialect)
    seconds = 3600.0 if asked.count else asked.seconds
    gc.disable()
    try:
        figures = drive(connections, request, seconds, asked.count, asked.first, asked.drain)
    except OSError as problem:
        figures = {"error": f"{type(problem).__name__}: {problem}"}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
