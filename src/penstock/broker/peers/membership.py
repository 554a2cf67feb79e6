"""A broker's place in its cluster: registered while it lives, anew after its session was lost."""

import asyncio
import logging
from collections.abc import Callable

from penstock.controller import broker_registration
from penstock.metadata import paths
from penstock.metadata.records import decode
from penstock.metadata.refusal import StoreError
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import MetadataStore, SessionState
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class Membership:
    """Keeps the registration. `registered` hears the epoch of each one, `seen` what it says when
    it is looked at: the controller may have altered it.
    """

    def __init__(
        self,
        store: MetadataStore,
        broker: BrokerId,
        registration: Callable[[], BrokerRegistration],
        registered: Callable[[int], object],
        seen: Callable[[BrokerRegistration], object],
        patience_s: float,
    ) -> None:
        self._store, self._broker, self._registration = store, broker, registration
        self._registered, self._seen, self._patience_s = registered, seen, patience_s
        self._wake = asyncio.Event()
        self.epoch = -1

    async def join(self) -> None:
        """Register; refused if another broker has the number."""
        epoch = await broker_registration.register(
            self._store, self._broker, self._registration(), patience_s=self._patience_s
        )
        self._take(epoch)

    def _take(self, epoch: int) -> None:
        self.epoch = epoch
        self._registered(epoch)

    async def run(self) -> None:
        """Register anew whenever the registration is gone: the session has expired, or the
        controller took this broker for dead.
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
                        logger.warning("broker %s was taken for dead: it joins anew", self._broker)
                        await self.join()
                    elif node.created_zxid != self.epoch:  # it was in doubt, and is ours
                        self._take(node.created_zxid)
                    else:
                        self._seen(decode(BrokerRegistration, node))
                except (StoreError, broker_registration.BrokerIdInUse) as error:
                    logger.debug("broker %s is not registered: %s", self._broker, error)
                    await asyncio.sleep(RETRY_S)
                    continue
                await self._wake.wait()
        finally:
            watch.cancel()
            session.cancel()

    def _session_changed(self, _: SessionState) -> None:
        self._wake.set()
