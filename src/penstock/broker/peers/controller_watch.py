"""Detects that the controller's process is gone before its session with the store ends.

A closed connection followed by a refused one means that the process is gone. The broker that
detects this deletes `/controller`, and the registration made in the same session, at the epoch that
was read, so that neither a newer controller nor a returned broker is affected.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from penstock.broker.peers.connection import PeerConnection
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.errors import StoreError
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import ElectedController, decode
from penstock.metadata.store import Check, Delete, MetadataStore
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

RETRY_S = 0.1


class ControllerWatch:
    """Holds a connection to the current controller until cancelled."""

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
        """Hold a connection to the broker for as long as it is the controller."""
        held = self._connect()
        try:
            while self._image().controller == controller:
                try:
                    connection = await held.opened()
                except KafkaError as error:
                    logger.debug("cannot reach the controller, broker %s: %s", controller, error)
                    if held.is_process_gone(error):
                        logger.warning(
                            "the controller, broker %s, refuses connections; removing it",
                            controller,
                        )
                        with suppress(StoreError):
                            await depose(self._store, controller)
                    await asyncio.sleep(RETRY_S)
                else:
                    await connection.wait_closed()
        finally:
            held.drop()


async def depose(store: MetadataStore, controller: BrokerId) -> None:
    """Delete `/controller` if it still names this broker, together with the broker's registration.

    In one step: otherwise the next controller would begin with dead leaders and detect them one by
    one.
    """
    wanted = (paths.CONTROLLER, paths.CONTROLLER_EPOCH, paths.broker(controller))
    elected, epoch, registered = map((await store.get_many(wanted)).get, wanted)
    if elected is None or epoch is None or decode(ElectedController, elected).broker != controller:
        return
    gone = [elected]
    if registered is not None and registered.ephemeral_owner == elected.ephemeral_owner:
        gone.append(registered)  # same session: the broker has not registered again since
    await store.multi(
        (
            Check(paths.CONTROLLER_EPOCH, epoch.version),
            *(Delete(each.path, each.version) for each in gone),
        )
    )
