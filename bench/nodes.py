"""The rows: by which command each is started, when it is ready, and what a right answer looks like."""

import http.client
import json
import shutil
import sys
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from environments import HERE, KEY, ours, place, python_of
from processes import Failed, Served, free_port, spawn, stop

WELL_KNOWN = "/.well-known/agent-card.json"
START_SECONDS_MAX = 60


@dataclass(frozen=True)
class Row:
    """One column of figures: a program and a store under it."""

    name: str
    program: str
    store: str = ""
    # 0 runs every cell in every round; 1 and 2 are rows for which long cells take minutes.
    slowness: int = 0

    @property
    def is_durable(self) -> bool:
        return self.store == "sqlite"


FLOOR = Row("floor", "floor")
OURS_MEMORY = Row("ours memory", "ours", "memory")
OURS_SQLITE = Row("ours SQLite", "ours", "sqlite")
SDK_MEMORY = Row("a2a-sdk memory", "a2a-sdk", "memory", slowness=1)
SDK_SQLITE = Row("a2a-sdk SQLite", "a2a-sdk", "sqlite", slowness=2)
ROWS = (FLOOR, OURS_MEMORY, OURS_SQLITE, SDK_MEMORY, SDK_SQLITE)


def command(row: Row, agent: str, port: int, store: str) -> list[str]:
    match row.program:
        case "floor":
            return [python_of("floor"), str(HERE / "rows" / "floor.py"), "--port", str(port)]
        case "a2a-sdk":
            script = str(HERE / "rows" / "a2a_sdk.py")
            return [python_of("a2a-sdk"), script, "--port", str(port), "--store", store, "--agent", agent]
        case _:
            what = f"{HERE / 'agents.py'}:{agent}"
            serve = [sys.executable, "-m", "dragoman", "serve", what]
            return [*serve, "--host", "127.0.0.1", "--port", str(port), "--store", store]


def start(row: Row, agent: str, store: str, env: dict[str, str] | None = None) -> Served:
    """Starts a row on a free port and waits until it describes itself."""
    port = free_port()
    log = place() / "logs" / f"{row.name.replace(' ', '-')}.log"
    more = {**(ours() if row.program == "ours" else {}), **(env or {})}
    served = Served(row.name, spawn(command(row, agent, port, store), log, more), port)
    try:
        _wait(served, log)
    except Failed:
        stop(served.process)
        raise
    return served


def _wait(served: Served, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if served.process.poll() is not None:
            lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
            raise Failed(f"{served.name} ended at once: {lines[-1][:200]}")
        try:
            status, body = exchange(served, "GET", WELL_KNOWN)
        except OSError:
            time.sleep(0.002)
            continue
        if status == 200:
            served.path = _path(json.loads(body))
            return
        raise Failed(f"{served.name} answers {status} for its card")
    raise Failed(f"{served.name} was not ready in {START_SECONDS_MAX} s")


def _path(card: dict) -> str:
    """The path of the card's JSON-RPC address; the host it names may be another than loopback."""
    for interface in card["supportedInterfaces"]:
        if interface["protocolBinding"] == "JSONRPC":
            return "/" + interface["url"].split("://", 1)[1].partition("/")[2]
    raise Failed("the card names no JSON-RPC address")


@contextmanager
def running(row: Row, agent: str, env: dict[str, str] | None = None):
    """A fresh node with an empty store of its own, ended and swept afterwards."""
    folder = place() / "stores" / uuid.uuid4().hex
    folder.mkdir(parents=True)
    store = f"sqlite:{folder / 'store.db'}" if row.is_durable else "memory:"
    served = None
    try:
        served = start(row, agent, store, env)
        yield served
    finally:
        if served:
            stop(served.process)
        shutil.rmtree(folder, ignore_errors=True)


def gateways(behind: Served) -> list[tuple[str, list[str]]]:
    """Ways through to a node: the command of each, to which its port is added."""
    url = f"http://127.0.0.1:{behind.port}"
    return [
        ("aiohttp proxy", [sys.executable, str(HERE / "rows" / "proxy.py"), url, "--port"]),
        ("our gateway", [sys.executable, "-m", "dragoman", "gateway", url, "--port"]),
    ]


@contextmanager
def through(name: str, command: list[str]):
    """One way through, at work on a port of its own."""
    port = free_port()
    log = place() / "logs" / f"{name.replace(' ', '-')}.log"
    served = Served(name, spawn([*command, str(port)], log, ours()), port)
    try:
        _wait(served, log)
        yield served
    finally:
        stop(served.process)


def exchange(
    served: Served, method: str, path: str, body: bytes | None = None, seconds: float = 60
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=seconds)
    try:
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0", "Authorization": f"Bearer {KEY}"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as problem:
        raise OSError(str(problem)) from problem
    finally:
        connection.close()


def ask(served: Served, method: str, params: dict) -> dict:
    """One JSON-RPC call; an error answer is a failure of the measurement, though it came with status 200."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    status, reply = exchange(served, "POST", served.path, body)
    value = json.loads(reply)
    if status != 200 or "result" not in value:
        raise Failed(f"{served.name} answered {method} with {status} {reply[:200]!r}")
    return value["result"]


def message(text: str) -> dict:
    return {"message": {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}]}}


def said(task: dict) -> str:
    return "".join(part.get("text", "") for one in task.get("artifacts", ()) for part in one["parts"])


def verify_echo(served: Served, count: int = 5) -> None:
    """Whole answers, read as JSON: completed, with the words that were sent and no others."""
    for _ in range(count):
        text = f"verify {uuid.uuid4().hex}"
        task = ask(served, "SendMessage", message(text))["task"]
        if task["status"]["state"] != "TASK_STATE_COMPLETED" or said(task) != text:
            raise Failed(f"{served.name} did not echo: {json.dumps(task)[:300]}")


def verify_stream(served: Served, chunks: int) -> None:
    """One stream, read as JSON: the task, every chunk in order and nothing else, completed."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": message(str(chunks))}
    status, reply = exchange(served, "POST", served.path, json.dumps(call).encode())
    lines = [line[5:] for line in reply.decode().splitlines() if line.startswith("data:")]
    events = [json.loads(line)["result"] for line in lines]
    told = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
    text = "".join(part.get("text", "") for one in told for part in one["artifact"]["parts"])
    expected = "".join(f"chunk {number} " for number in range(chunks))
    states = [event["statusUpdate"]["status"]["state"] for event in events if "statusUpdate" in event]
    if (
        status != 200
        or "task" not in (events or [{}])[0]
        or text != expected
        or states[-1:] != ["TASK_STATE_COMPLETED"]
    ):
        raise Failed(
            f"{served.name} streamed something else: {len(events)} events, {len(told)} chunks, {states}"
        )
