"""Waits until a new session is connected."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from penstock.metadata.store import SessionState, Subscription


class ConnectingStore(Protocol):
    """A store whose session begins SUSPENDED."""

    def start(self) -> None: ...
    def watch_session(self, on_state: Callable[[SessionState], None]) -> Subscription: ...


async def start_and_connect(store: ConnectingStore, timeout_ms: int) -> None:
    """Start the store and wait for its session; TimeoutError if no server answers in time."""
    connected = asyncio.Event()

    def on_state(state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            connected.set()

    watch = store.watch_session(on_state)
    store.start()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await connected.wait()
    finally:
        watch.cancel()
