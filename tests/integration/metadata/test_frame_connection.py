"""Frames between the store's owner and the processes that share it."""

import asyncio
import socket

import pytest

from penstock.metadata.shared import connection
from penstock.metadata.shared.connection import FrameConnection


def test_a_peer_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_UNSENT", 1 << 20)

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        lost = asyncio.Event()
        sending = FrameConnection(asyncio.get_running_loop(), ours, print, lost.set)
        with theirs:
            for _ in range(64):
                sending.send(bytes(1 << 16))
            await asyncio.wait_for(lost.wait(), 10)

    asyncio.run(scenario())
