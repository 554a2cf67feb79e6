"""The election of the controller.

Every broker watches `/controller`. The broker that creates the node first is the controller.
"""

import asyncio
import logging
from collections.abc import Callable

from penstock.controller.controller import Controller
from penstock.controller.operations import EXPECTED_FAILURES
from penstock.errors import KafkaError, StorageError
from penstock.metadata import paths
from penstock.metadata.errors import NoNode
from penstock.metadata.records import NO_LEADER, ElectedController, decode
from penstock.metadata.store import MetadataStore, Node, SessionState
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

RETRY_S = 0.1
"""Delay before the next attempt after the store has failed."""


class ControllerElection:
    """One broker's part in the election. Calls `on_controller` with the current controller."""

    def __init__(
        self,
        store: MetadataStore,
        controller: Controller,
        on_controller: Callable[[BrokerId], object],
    ) -> None:
        self._store, self._controller, self._on_controller = store, controller, on_controller
        self._wake = asyncio.Event()
        self._failure = ""
        """Why the last attempt failed; it is repeated often, and logged once."""
        controller.on_resigned = self._wake.set

    async def start(self) -> None:
        """Take part for the first time. While the store is away, `run` keeps trying."""
        await self._store.watch(lambda _: self._wake.set(), data=[paths.CONTROLLER])
        self._store.watch_session(self._session_changed)
        if not await self._has_elected():
            self._wake.set()

    async def run(self) -> None:
        """Elect again after each change of `/controller`; until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            has_elected = False
            try:
                has_elected = await self._has_elected()
            finally:
                if not has_elected:  # whatever happened: without a controller, nothing else wakes
                    self._wake.set()
            if not has_elected:
                await asyncio.sleep(RETRY_S)

    async def _has_elected(self) -> bool:
        try:
            await self._elect()
        except (KafkaError, StorageError) as error:
            # Whatever the store refused may succeed at the next attempt, here or on another broker,
            # and a full disk may have room again.
            is_expected = isinstance(error, (*EXPECTED_FAILURES, NoNode))
            is_repeated, self._failure = self._failure == str(error), str(error)
            level = logging.DEBUG if is_expected or is_repeated else logging.ERROR
            logger.log(level, "the controller election failed, trying again: %s", error)
            return False
        self._failure = ""
        return True

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._controller.resign()
        elif state is SessionState.CONNECTED:
            self._controller.check_for_changes()
        self._wake.set()

    async def _elect(self) -> None:
        """Ensure that some broker is the controller."""
        node = await self._current()
        ours = node is not None and node.ephemeral_owner == self._store.session_id
        if node is not None and ours and not self._controller.is_active:
            # Won in this session and resigned since, or the answer to the win was lost.
            await self._store.delete(paths.CONTROLLER, node.version)
            node = None
        if node is None:
            self._controller.resign()
            self._on_controller(NO_LEADER)
            await self._controller.start()
            self._on_controller(self._controller.broker)
        elif not ours:
            self._controller.resign()
            self._on_controller(decode(ElectedController, node).broker)

    async def _current(self) -> Node | None:
        try:
            return await self._store.get(paths.CONTROLLER)
        except NoNode:
            return None
