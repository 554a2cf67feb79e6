"""Keeps this broker registered in the store, and registers it again after a lost session."""

import asyncio
import logging
from collections.abc import Callable

from penstock.controller import broker_registration
from penstock.metadata import paths
from penstock.metadata.errors import StoreError
from penstock.metadata.records import decode
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import MetadataStore, SessionState
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class BrokerLifecycle:
    """Calls `on_registered` with the broker epoch of each registration, and `on_read` with the
    registration each time it is read: the controller may have altered it.
    """

    def __init__(
        self,
        store: MetadataStore,
        broker: BrokerId,
        registration: Callable[[], BrokerRegistration],
        on_registered: Callable[[int], object],
        on_read: Callable[[BrokerRegistration], object],
        patience_s: float,
    ) -> None:
        self._store, self._broker, self._registration = store, broker, registration
        self._on_registered, self._on_read = on_registered, on_read
        self._patience_s = patience_s
        self._wake = asyncio.Event()
        self.epoch = -1

    async def register(self) -> None:
        """Register; refused if another broker has this id."""
        epoch = await broker_registration.register(
            self._store, self._broker, self._registration(), patience_s=self._patience_s
        )
        self._set_epoch(epoch)

    def _set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self._on_registered(epoch)

    async def run(self) -> None:
        """Register again whenever the registration is gone: the session has expired, or the
        controller or another broker removed it.
        """
        path = paths.broker(self._broker)
        watch = await self._store.watch(lambda _: self._wake.set(), data=[path])
        session = self._store.watch_session(self._session_changed)
        try:
            while True:
                self._wake.clear()
                try:
                    node = (await self._store.get_many([path])).get(path)
                    if node is None or node.ephemeral_owner != self._store.session_id:
                        logger.warning(
                            "broker %s: registration lost; registering again", self._broker
                        )
                        await self.register()
                    elif node.created_zxid != self.epoch:  # ours; the response was lost
                        self._set_epoch(node.created_zxid)
                    else:
                        self._on_read(decode(BrokerRegistration, node))
                except (StoreError, broker_registration.BrokerIdInUse) as error:
                    logger.debug(
                        "broker %s: not registered yet, trying again: %s", self._broker, error
                    )
                    await asyncio.sleep(RETRY_S)
                    continue
                await self._wake.wait()
        finally:
            watch.cancel()
            session.cancel()

    def _session_changed(self, _: SessionState) -> None:
        self._wake.set()
