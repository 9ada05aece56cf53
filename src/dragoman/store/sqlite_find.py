"""Lists of tasks in SQLite: a query as SQL, and the page token that says where the next page begins."""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any

import apsw
import msgspec

from ..model.audit import AuditEntry, AuditQuery
from ..model.errors import error
from .sqlite_file import QUERIES, rows_of
from .sqlite_known import stored
from .store import Found, Query

__all__ = ["PAGE_SIZE_MAX", "audited", "find"]

PAGE_SIZE_MAX = 1000

_PLACE = struct.Struct(">dqI")


def find(db: apsw.Connection, query: Query) -> Found:
    """A page of tasks, newest status first, and how many there are in all."""
    size = max(1, min(query.size, PAGE_SIZE_MAX))
    start = _place(query)
    where, values = _where(query)
    # Without the hint a context would be looked for among all tasks of its owner.
    index = " INDEXED BY logs_of_context" if query.context else ""
    page, page_values = where, values
    if start is not None:
        page = f"{where} AND (at, id) < (?, ?)"
        page_values = [*values, *start]
    # Every text here is one of ours; what callers say goes in as values.
    count = f"SELECT count(*) FROM logs{index} WHERE {where}"  # noqa: S608
    select = f"{QUERIES['page']}{index} WHERE {page} ORDER BY at DESC, id DESC LIMIT ?"
    with db:
        ((total,),) = rows_of(db, count, values)
        rows = rows_of(db, select, [*page_values, size + 1])
    found = [stored(row) for row in rows[:size]]
    token = _token(query, found[-1].row.head.at, found[-1].id) if len(rows) > size else ""
    return Found([log.row for log in found], token, total)


def audited(db: apsw.Connection, query: AuditQuery) -> list[tuple[int, AuditEntry]]:
    """Entries of the audit log, newest first."""
    terms = ["at >= ?"]
    values: list[Any] = [query.since]
    for column in ("trace", "task", "caller", "agent"):
        if value := getattr(query, column):
            # Said twice, so that the index of those that have one is taken.
            terms.append(f"{column} = ? AND {column} <> ''")
            values.append(value)
    if query.before is not None:
        terms.append("position < ?")
        values.append(query.before)
    select = f"{QUERIES['audited']} WHERE {' AND '.join(terms)} ORDER BY position DESC LIMIT ?"
    return [(position, _entry(body)) for position, body in rows_of(db, select, [*values, query.limit])]


_entry = msgspec.json.Decoder(AuditEntry).decode


def _where(query: Query) -> tuple[str, list[Any]]:
    terms = ["kind = 'task'", "hidden = 0"]
    values: list[Any] = []
    for column, value in (("tenant", query.tenant), ("owner", query.owner), ("agent", query.agent)):
        if value is not None:
            terms.append(f"{column} = ?")
            values.append(value)
    if query.context:
        terms.append("context = ? AND context <> ''")
        values.append(query.context)
    if query.state is not None:
        terms.append("state = ?")
        values.append(query.state.word)
    if query.since is not None:
        terms.append("at >= ?")
        values.append(query.since)
    return " AND ".join(terms), values


def _token(query: Query, at: float, id_: int) -> str:
    return base64.urlsafe_b64encode(_PLACE.pack(at, id_, _check(query, at, id_))).decode()


def _place(query: Query) -> tuple[float, int] | None:
    if not query.token:
        return None
    try:
        at, id_, check = _PLACE.unpack(base64.urlsafe_b64decode(query.token))
    except (ValueError, struct.error):
        at, id_, check = 0.0, 0, -1
    if check != _check(query, at, id_):
        raise error("InvalidParams", "this page token was not given for this query", at="pageToken")
    return at, id_


def _check(query: Query, at: float, id_: int) -> int:
    # A token holds nothing secret; the sum only tells a mistake from a place.
    asked = (query.owner, query.tenant, query.agent, query.context, query.state, query.since)
    return binascii.crc32(repr((asked, at, id_)).encode())
