"""Running for the office of the controller, whenever it is free.

Every broker watches `/controller`. Whoever creates it first is elected; the others hear who it is.
"""

import asyncio
import logging
from collections.abc import Callable

from penstock.controller.controller import Controller
from penstock.controller.term import NotController
from penstock.metadata import paths
from penstock.metadata.records import NO_LEADER, decode
from penstock.metadata.records import Controller as Elected
from penstock.metadata.refusal import NoNode, StoreError
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
        self.settled = asyncio.Event()
        """It is known who the controller is."""

    async def run(self) -> None:
        """Look at who holds the office after each change of it; until cancelled."""
        told = await self._store.watch(lambda _: self._wake.set(), data=[paths.CONTROLLER])
        session = self._store.watch_session(self._session_changed)
        try:
            while True:
                self._wake.clear()
                try:
                    settled = await self._look()
                except (NotController, StoreError) as error:
                    logger.info("the controller is not known: %s", error)
                    settled = False
                if settled:
                    self.settled.set()
                    await self._wake.wait()
                else:
                    await asyncio.sleep(RETRY_S)
        finally:
            told.cancel()
            session.cancel()

    def again(self) -> None:
        """Look again: the controller has given up its office."""
        self._wake.set()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._controller.resign()
        self._wake.set()

    async def _look(self) -> bool:
        """True once somebody is in office."""
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
            return True
        if not ours:
            self._controller.resign()
            self._heard(decode(Elected, node).broker)
        return True

    async def _holder(self) -> Node | None:
        try:
            return await self._store.get(paths.CONTROLLER)
        except NoNode:
            return None
