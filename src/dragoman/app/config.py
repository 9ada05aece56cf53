"""The configuration: one table of settings, read from a file, the environment and flags, in rising order."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

__all__ = ["Config", "ConfigError", "load", "masked", "seconds"]

FILE = "dragoman.toml"
Day = 24 * 3600.0


class ConfigError(Exception):
    """A setting that cannot be: says where it was written and what would be right."""


class NodeConfig(Struct, forbid_unknown_fields=True):
    """Where the node listens. `url` is what cards say, when it is not the address itself."""

    host: str = "127.0.0.1"
    port: int = 8420
    url: str = ""
    drain_seconds: float = 30.0


class StoreConfig(Struct, forbid_unknown_fields=True):
    """Where logs are kept. `tasks_max` bounds the memory store; a database keeps by age."""

    url: str = "memory:"
    tasks_max: int = 1000
    active_tasks_max: int = 100_000
    owner_active_max: int = 10_000
    retention_seconds: float = 30 * Day


class TasksConfig(Struct, forbid_unknown_fields=True):
    """Rules of tasks, for agents that do not declare their own."""

    input_deadline_seconds: float = 7 * Day
    first_word_seconds: float = 2.0
    cancel_grace_seconds: float = 0.0
    attempts_max: int = 3
    turns_max: int = 1000


class ServeConfig(Struct, forbid_unknown_fields=True):
    """How requests are answered. `statuses` of 1.0.0 are older clients'; `bytes_0_3` says how often 0.3 over REST
    puts bytes into base64, which its SDK does twice."""

    body_bytes_max: int = 20 * 1024 * 1024
    root_card: str = "first"
    card: Literal["by-header", "hybrid", "strict"] = "by-header"
    statuses: Literal["1.0.0", "1.0.1"] = "1.0.1"
    ends_at_question: bool = True
    bytes_0_3: Literal["twice", "once"] = "twice"


class KeyConfig(Struct, forbid_unknown_fields=True):
    """An API key, and who shows it: `key` itself, or its SHA-256 in hex, or the variable that holds it."""

    id: str
    key: str = ""
    key_sha256: str = ""
    key_env: str = ""
    owner: str = ""
    tenant: str = ""
    scopes: list[str] | None = None


class UserConfig(Struct, forbid_unknown_fields=True):
    """A name with a password, for HTTP's basic scheme."""

    name: str
    password: str = ""
    password_env: str = ""
    owner: str = ""
    tenant: str = ""
    scopes: list[str] | None = None


class IssuerConfig(Struct, forbid_unknown_fields=True):
    """Whose JSON Web Tokens are taken. Its keys are found by OIDC discovery, at `jwks_url`, or in the file `keys`."""

    issuer: str
    audience: str
    jwks_url: str = ""
    keys: str = ""
    algorithms: list[str] = []
    owner_claim: str = "sub"
    tenant_claim: str = ""
    scope_claim: str = ""
    leeway_seconds: int = 60


class CertificateConfig(Struct, forbid_unknown_fields=True):
    """Who shows a certificate with this subject (its common name)."""

    subject: str
    owner: str = ""
    tenant: str = ""
    scopes: list[str] | None = None


class AuthConfig(Struct, forbid_unknown_fields=True):
    """What callers show. With none of these there is no door, and the node listens to its own machine only;
    `open` says that everybody may call, from anywhere."""

    open: bool = False
    bearer: str = ""
    keys: list[KeyConfig] = []
    users: list[UserConfig] = []
    issuers: list[IssuerConfig] = []
    certificates: list[CertificateConfig] = []


class LimitsConfig(Struct, forbid_unknown_fields=True):
    """How much may be asked in a minute, in tokens: a message costs 30, a look 5. 0 is without limit."""

    address_tokens_per_minute: int = 500
    caller_tokens_per_minute: int = 30_000
    streams_max: int = 100


class TlsConfig(Struct, forbid_unknown_fields=True):
    """Certificate and key in PEM files; `client_ca` is whose certificates callers may show."""

    cert: str = ""
    key: str = ""
    client_ca: str = ""


class OutboundConfig(Struct, forbid_unknown_fields=True):
    """Networks that are reached on others' word though they are not public, as in ["127.0.0.0/8"]."""

    allow: list[str] = []


class AuditConfig(Struct, forbid_unknown_fields=True):
    """How long the audit log keeps what was called."""

    retention_seconds: float = 90 * Day


class LogConfig(Struct, forbid_unknown_fields=True):
    level: str = "info"
    format: str = "text"


class Config(Struct, forbid_unknown_fields=True):
    """The effective configuration. `sources` says where each setting that is not a default came from."""

    node: NodeConfig = msgspec.field(default_factory=NodeConfig)
    store: StoreConfig = msgspec.field(default_factory=StoreConfig)
    tasks: TasksConfig = msgspec.field(default_factory=TasksConfig)
    serve: ServeConfig = msgspec.field(default_factory=ServeConfig)
    auth: AuthConfig = msgspec.field(default_factory=AuthConfig)
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    tls: TlsConfig = msgspec.field(default_factory=TlsConfig)
    outbound: OutboundConfig = msgspec.field(default_factory=OutboundConfig)
    audit: AuditConfig = msgspec.field(default_factory=AuditConfig)
    log: LogConfig = msgspec.field(default_factory=LogConfig)
    sources: dict[str, str] = msgspec.field(default_factory=dict)


SECTIONS: dict[str, type[Struct]] = {
    "node": NodeConfig,
    "store": StoreConfig,
    "tasks": TasksConfig,
    "serve": ServeConfig,
    "auth": AuthConfig,
    "limits": LimitsConfig,
    "tls": TlsConfig,
    "outbound": OutboundConfig,
    "audit": AuditConfig,
    "log": LogConfig,
}
PREFIX = "DRAGOMAN_"
# Names of the environment that are not settings.
RESERVED = frozenset({"DRAGOMAN_HOME", "DRAGOMAN_TEST_SCALE", "DRAGOMAN_CONFIG"})


def load(
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration. `flags` are `section.key: value`, `None` meaning not given."""
    environ = os.environ if environ is None else environ
    config = Config()
    named = file or environ.get("DRAGOMAN_CONFIG") or (FILE if Path(FILE).exists() else None)
    if named is not None:
        _read_file(config, Path(named))
    for name, text in sorted(environ.items()):
        if name.startswith(PREFIX) and name not in RESERVED:
            _read_variable(config, name, text)
    for name, value in (flags or {}).items():
        if value is not None:
            section, _, key = name.partition(".")
            _set(config, section, key, value, f"flag for {name}")
    return config


def _read_file(config: Config, path: Path) -> None:
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as wrong:
        raise ConfigError(f"{path} cannot be read: {wrong.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"{path} is not TOML: {wrong}") from None
    for section, table in tables.items():
        if section not in SECTIONS:
            raise ConfigError(f"{path}: there is no section [{section}]{_nearest(section, SECTIONS)}")
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {section} is a section: write [{section}] and its keys below")
        for key, value in table.items():
            _set(config, section, key, value, str(path))


def _read_variable(config: Config, name: str, text: str) -> None:
    section, _, key = name.removeprefix(PREFIX).lower().partition("_")
    if section not in SECTIONS:
        sections = [f"{PREFIX}{known.upper()}" for known in SECTIONS]
        raise ConfigError(f"{name}: no section {section!r}{_nearest(f'{PREFIX}{section.upper()}', sections)}")
    _set(config, section, key, text, name)


def _set(config: Config, section: str, key: str, value: Any, source: str) -> None:
    kind = SECTIONS[section]
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    if key not in fields:
        raise ConfigError(f"{source}: [{section}] has no {key!r}{_nearest(key, fields)}")
    if key.endswith("_seconds") and isinstance(value, str):
        try:
            value = seconds(value)
        except ValueError as wrong:
            raise ConfigError(f"{source}: {section}.{key}: {wrong}") from None
    if isinstance(value, str) and _is_list(fields[key]):
        # In one variable or flag a list stands with commas between.
        value = [word.strip() for word in value.split(",") if word.strip()]
    try:
        value = msgspec.convert(value, fields[key], strict=not isinstance(value, str))
    except msgspec.ValidationError as wrong:
        raise ConfigError(f"{source}: {section}.{key}: {wrong}, got {value!r}") from None
    setattr(getattr(config, section), key, value)
    config.sources[f"{section}.{key}"] = source


def _is_list(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) is list


# Settings that are shown to nobody, by name.
SECRETS = frozenset({"bearer", "key", "password"})


def masked(value: Any, name: str = "") -> Any:
    """A setting as it may be shown."""
    if isinstance(value, list):
        return [masked(one) for one in value]
    if isinstance(value, Struct):
        return {field: masked(one, field) for field, one in msgspec.structs.asdict(value).items()}
    return "***" if name in SECRETS and value else value


def _nearest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), 1, 0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": Day}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", re.ASCII)


def seconds(text: str) -> float:
    """A span of time as people write it: `2s`, `500ms`, `5m`, `1h`, `30d`; a bare number is seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a span of time like 500ms, 2s, 5m, 1h or 30d")
    return float(match.group(1)) * _UNITS[match.group(2) or "s"]
