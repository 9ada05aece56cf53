"""The commands of whoever runs nodes and writes agents: up, serve, init, config and doctor."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Argument, Option

from . import options as o

__all__ = ["add_node_commands"]

Host = Annotated[str | None, Option("--host", metavar="HOST", help="Listen on this address [127.0.0.1].")]
Port = Annotated[
    int | None,
    Option(
        "--port", metavar="PORT", min=0, max=65535, help="Listen on this port; 0 takes a free one [8420]."
    ),
]
Store = Annotated[str | None, Option("--store", metavar="memory:|sqlite:PATH", help="Where tasks are kept.")]
Log = Annotated[str | None, Option("--log-format", metavar="text|json", help="How to log on stderr [text].")]
Level = Annotated[
    str | None,
    Option("--log-level", metavar="LEVEL", help="What to log: debug, info, warning or error [info]."),
]

Files = Annotated[
    list[str],
    Argument(
        metavar="FILE[:NAME]|URL...",
        help="Python files with agents in them, or module:name; or addresses of agents elsewhere.",
    ),
]
InputDeadline = Annotated[
    str | None,
    Option("--input-deadline", metavar="TIME", help="How long a question waits, as in 2s or 7d [7d]."),
]
Url = Annotated[
    str | None, Option("--url", metavar="URL", help="The address that cards say, behind a proxy.")
]

Auth = Annotated[
    list[str] | None,
    Option(
        "--auth",
        metavar="bearer=TOKEN|key=ID:KEY|none",
        help="What callers show; repeatable. none lets everybody in, from anywhere.",
    ),
]
Certificate = Annotated[
    str | None, Option("--tls-cert", metavar="FILE", help="Speak TLS with this certificate.")
]
CertificateKey = Annotated[
    str | None, Option("--tls-key", metavar="FILE", help="The key of that certificate.")
]
ClientCa = Annotated[
    str | None,
    Option("--tls-client-ca", metavar="FILE", help="Callers may show certificates of this authority."),
]
AllowAddress = Annotated[
    list[str] | None,
    Option(
        "--allow-address",
        metavar="NETWORK",
        help="Reach this network on others' word, as 127.0.0.0/8; repeatable.",
    ),
]

config = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The settings and where they come from."
)
init = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Begin something that runs at once.")


def add_node_commands(app: typer.Typer) -> None:
    """Give the program these commands."""
    app.command(epilog="Example: dragoman up --port 9000 --store memory:")(up)
    examples = """\b
Examples:
  dragoman serve agent.py
  dragoman serve agent.py:agent other.py --store sqlite:tasks.db
  dragoman serve agent.py https://their.agent
  dragoman serve agent.py --host 0.0.0.0 --auth bearer=TOKEN --tls-cert cert.pem --tls-key key.pem"""
    app.command(epilog=examples)(serve)
    examples = """\b
Examples:
  dragoman gateway https://their.agent --port 8430
  dragoman gateway http://127.0.0.1:9999 --dialect 0.3 --bearer TOKEN"""
    app.command(epilog=examples)(o.reaching(gateway))
    examples = """\b
Examples:
  dragoman audit --trace 4bf92f3577b34da6a3ce929d0e0e4736
  dragoman audit --caller acme --since 1h -o json"""
    app.command(epilog=examples)(audit)
    app.add_typer(init, name="init")
    app.add_typer(config, name="config")
    app.command(epilog="Example: dragoman doctor -o json")(doctor)


def up(
    host: Host = None,
    port: Port = None,
    store: Store = None,
    auth: Auth = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    tls_client_ca: ClientCa = None,
    allow_address: AllowAddress = None,
    config: o.ConfigFile = None,
    log_format: Log = None,
    log_level: Level = None,
) -> None:
    """Start a node with a demo agent."""
    from .serving import up

    flags = _flags(host, port, store, log_format, log_level)
    flags |= _door_flags(auth, tls_cert, tls_key, tls_client_ca, allow_address)
    raise typer.Exit(up(config, flags))


def serve(
    target: Files,
    host: Host = None,
    port: Port = None,
    store: Store = None,
    input_deadline: InputDeadline = None,
    url: Url = None,
    auth: Auth = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    tls_client_ca: ClientCa = None,
    allow_address: AllowAddress = None,
    config: o.ConfigFile = None,
    log_format: Log = None,
    log_level: Level = None,
) -> None:
    """Serve the agents of Python files, all of them or the one that is named, and agents elsewhere as if they were
    this node's own."""
    from .serving import serve

    flags = _flags(host, port, store, log_format, log_level)
    flags |= {"node.url": url, "tasks.input_deadline_seconds": input_deadline}
    flags |= _door_flags(auth, tls_cert, tls_key, tls_client_ca, allow_address)
    raise typer.Exit(serve(target, config, flags))


def gateway(
    target: Annotated[str, Argument(metavar="URL", help="The agent's address.")],
    host: Annotated[str, Option("--host", metavar="HOST", help="Listen on this address.")] = "127.0.0.1",
    port: Annotated[
        int,
        Option("--port", metavar="PORT", min=0, max=65535, help="Listen on this port; 0 takes a free one."),
    ] = 8430,
    url: Annotated[str, Option("--url", metavar="URL", help="The address that the card says.")] = "",
    card: Annotated[
        str, Option("--card", metavar="by-header|hybrid|strict", help="Which card is served.")
    ] = "by-header",
    way: o.Way = o.NEAR,
) -> None:
    """Serve somebody else's agent here, in every version and over every binding."""
    from .serving import gateway, run_fast

    forms = ("by-header", "hybrid", "strict")
    if card not in forms:
        raise typer.BadParameter(f"{card!r} is none of {', '.join(forms)}", param_hint="'--card'")
    raise typer.Exit(run_fast(gateway(way.to(target), host, port, url, card)))  # type: ignore[arg-type]


def audit(
    target: o.Target = None,
    trace: Annotated[str, Option("--trace", metavar="ID", help="Calls of this trace only.")] = "",
    task: Annotated[str, Option("--task", metavar="ID", help="Calls about this task only.")] = "",
    caller: Annotated[str, Option("--caller", metavar="NAME", help="Calls of this caller only.")] = "",
    agent: Annotated[str, Option("--agent", metavar="NAME", help="Calls of this agent only.")] = "",
    since: Annotated[
        str, Option("--since", metavar="TIME", help="Not older than this, as in 1h or 7d.")
    ] = "",
    limit: Annotated[
        int, Option("-n", "--limit", metavar="N", min=1, max=1000, help="At most so many.")
    ] = 100,
    output: o.Output = "text",
    bearer: o.Bearer = None,
    store: o.NodeStore = None,
) -> None:
    """Show who called which agent, on which task, with what outcome: the newest first."""
    from .auditing import show
    from .reaching import run
    from .seen import Seen

    seconds = o.time_of(since, "--since") if since else None
    asked = {"trace": trace, "task": task, "caller": caller, "agent": agent, "limit": limit}
    work = show(target or "", bearer or "", store, asked, seconds, o.shown(output).as_json)
    raise typer.Exit(run(work, Seen(o.NEAR)))


def _flags(
    host: str | None, port: int | None, store: str | None, form: str | None, level: str | None
) -> dict[str, Any]:
    return {
        "node.host": host,
        "node.port": port,
        "store.url": store,
        "log.format": form,
        "log.level": level,
    }


def _door_flags(
    auth: list[str] | None,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    allow_address: list[str] | None,
) -> dict[str, Any]:
    flags: dict[str, Any] = {
        "tls.cert": tls_cert,
        "tls.key": tls_key,
        "tls.client_ca": tls_client_ca,
        "outbound.allow": allow_address or None,
    }
    for said in auth or ():
        kind, _, value = said.partition("=")
        id, colon, key = value.partition(":")
        if said == "none":
            flags["auth.open"] = True
        elif kind == "bearer" and value:
            flags["auth.bearer"] = value
        elif kind == "key" and id and colon and key:
            flags.setdefault("auth.keys", []).append({"id": id, "key": key})
        else:
            raise typer.BadParameter(
                f"{kind!r} is none of bearer=TOKEN, key=ID:KEY, none", param_hint="'--auth'"
            )
    return flags


@config.callback()
def _config() -> None:
    """The settings and where they come from."""


@config.command("show", epilog="Example: DRAGOMAN_NODE_PORT=9000 dragoman config show")
def show(file: o.ConfigFile = None, output: o.Output = "text") -> None:
    """Show each setting as it is in effect, and its source."""
    from .setting_up import show_config

    raise typer.Exit(show_config(file, o.shown(output).as_json))


@init.callback()
def _init() -> None:
    """Begin something that runs at once."""


@init.command("agent", epilog="Example: dragoman init agent hello && dragoman serve hello/agent.py")
def init_agent(
    folder: Annotated[str, Argument(metavar="[DIR]", help="Where to write it.")] = ".",
) -> None:
    """Write an agent to begin with: agent.py."""
    from .setting_up import write_agent

    raise typer.Exit(write_agent(folder))


def doctor(
    host: Host = None,
    port: Port = None,
    store: Store = None,
    config: o.ConfigFile = None,
    output: o.Output = "text",
) -> None:
    """Look whether a node can run here, and say what to do if not."""
    from .setting_up import examine

    flags = _flags(host, port, store, None, None)
    raise typer.Exit(examine(config, flags, o.shown(output).as_json))
