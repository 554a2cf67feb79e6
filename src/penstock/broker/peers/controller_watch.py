"""Noticing that the controller's process is gone before its session with the store is.

A closed connection and a refused one after it mean that nobody listens there any more. Whoever
notices removes `/controller`, and what the broker registered in that session, at the epoch that
was read: a newer controller is never touched, nor a broker that has come back.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from penstock.broker.peers.connection import PeerConnection
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import Controller, decode
from penstock.metadata.refusal import StoreError
from penstock.metadata.store import Check, Delete, MetadataStore
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

RETRY_S = 0.1


class ControllerWatch:
    """Holds a connection to whoever is the controller; until cancelled."""

    def __init__(
        self,
        broker_id: BrokerId,
        store: MetadataStore,
        connect: Callable[[], PeerConnection],
        image: Callable[[], ClusterImage],
    ) -> None:
        self._broker_id, self._store = broker_id, store
        self._connect, self._image = connect, image

    async def run(self) -> None:
        while True:
            controller = self._image().controller
            if controller not in {-1, self._broker_id}:
                await self._hold(controller)
            await asyncio.sleep(RETRY_S)

    async def _hold(self, controller: BrokerId) -> None:
        """For as long as this broker is the controller."""
        held = self._connect()
        try:
            while self._image().controller == controller:
                try:
                    connection = await held.opened()
                except KafkaError as error:
                    logger.debug("broker %s, the controller, is not reached: %s", controller, error)
                    if held.is_dead(error):
                        logger.warning("broker %s, the controller, listens no more", controller)
                        with suppress(StoreError):
                            await depose(self._store, controller)
                    await asyncio.sleep(RETRY_S)
                else:
                    await connection.wait_closed()
        finally:
            held.drop()


async def depose(store: MetadataStore, controller: BrokerId) -> None:
    """Free the office, if it is still this broker that holds it; its registration goes as well.

    Else its successor would begin with leaders that are gone, and find that out one by one.
    """
    wanted = (paths.CONTROLLER, paths.CONTROLLER_EPOCH, paths.broker(controller))
    holder, epoch, registered = map((await store.get_many(wanted)).get, wanted)
    if holder is None or epoch is None or decode(Controller, holder).broker != controller:
        return
    gone = [holder]
    if registered is not None and registered.ephemeral_owner == holder.ephemeral_owner:
        gone.append(registered)  # of the same life: it has not come back meanwhile
    await store.multi(
        (
            Check(paths.CONTROLLER_EPOCH, epoch.version),
            *(Delete(each.path, each.version) for each in gone),
        )
    )
