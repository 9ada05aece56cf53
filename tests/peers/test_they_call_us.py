"""Other parties' clients talk to agents of ours, in every dialect they speak."""

from __future__ import annotations

import pytest

from tests.peers.cases import Case, reconnect
from tests.peers.cells import Line

RECONNECTS = 50


async def test_their_client_sees_what_the_protocol_promises(line: Line, case: Case) -> None:
    async with line() as talk:
        await case.do(talk)


@pytest.mark.slow
@pytest.mark.within(300)
async def test_a_reconnect_without_a_cursor_begins_with_the_task_and_ends_with_the_true_artifact(
    line: Line, scale: int
) -> None:
    """Streams of chunks are left and taken up again, by a client that knows no cursors.

    Shows: F05
    """
    async with line() as talk:
        await reconnect(talk, RECONNECTS * scale)
