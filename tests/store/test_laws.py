"""The laws on each store: in memory and in a SQLite file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Store
from tests.store.exercise import HandClock, Laws, Opened


class TestMemory(Laws):
    @pytest.fixture
    def opened(self) -> Opened:
        @asynccontextmanager
        async def open_one(active_tasks_max: int = 1000) -> AsyncGenerator[Store, None]:
            store = MemoryStore(tasks_max=active_tasks_max)
            yield store
            await store.close()

        return open_one


class TestSqlite(Laws):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        @asynccontextmanager
        async def open_one(**limits: Any) -> AsyncGenerator[Store, None]:
            store = await SqliteStore.open(tmp_path / "store.db", clock=HandClock(), **limits)
            yield store
            await store.close()

        return open_one
