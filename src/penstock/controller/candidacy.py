"""Running for the office of the controller, whenever it is free.

Every broker watches `/controller`. Whoever creates it first is elected; the others hear who it is.
"""

import asyncio
import logging
from collections.abc import Callable

from penstock.controller.controller import Controller
from penstock.controller.operations import OUT_OF_OFFICE
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.records import NO_LEADER, decode
from penstock.metadata.records import Controller as Elected
from penstock.metadata.refusal import NoNode
from penstock.metadata.store import MetadataStore, Node, SessionState
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

RETRY_S = 0.1
"""After the store has failed: it has come back, or it is tried again."""


class Candidacy:
    """One broker's, for as long as it runs. `heard` is told who the controller is."""

    def __init__(
        self, store: MetadataStore, controller: Controller, heard: Callable[[BrokerId], object]
    ) -> None:
        self._store, self._controller, self._heard = store, controller, heard
        self._wake = asyncio.Event()
        controller.resigned = self._wake.set

    async def start(self) -> None:
        """Look for the first time. While the store is away, `run` goes on trying."""
        await self._store.watch(lambda _: self._wake.set(), data=[paths.CONTROLLER])
        self._store.watch_session(self._session_changed)
        if not await self._looked():
            self._wake.set()

    async def run(self) -> None:
        """Look at who holds the office after each change of it; until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not await self._looked():
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def _looked(self) -> bool:
        try:
            await self._look()
        except KafkaError as error:
            # Whatever the store refused, it may take when it is tried again, here or elsewhere.
            level = logging.DEBUG if isinstance(error, (*OUT_OF_OFFICE, NoNode)) else logging.ERROR
            logger.log(level, "the controller is not known: %s", error)
            return False
        return True

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._controller.resign()
        elif state is SessionState.CONNECTED:
            self._controller.look_again()
        self._wake.set()

    async def _look(self) -> None:
        """Then somebody is in office."""
        node = await self._holder()
        ours = node is not None and node.ephemeral_owner == self._store.session_id
        if node is not None and ours and not self._controller.in_office:
            # Won in this session and given up since, or it is not known to have been won.
            await self._store.delete(paths.CONTROLLER, node.version)
            node = None
        if node is None:
            self._controller.resign()
            self._heard(NO_LEADER)
            await self._controller.start()
            self._heard(self._controller.broker)
        elif not ours:
            self._controller.resign()
            self._heard(decode(Elected, node).broker)

    async def _holder(self) -> Node | None:
        try:
            return await self._store.get(paths.CONTROLLER)
        except NoNode:
            return None
