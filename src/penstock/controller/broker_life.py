"""Brokers come and go: who they are is read from the store, and partitions follow."""

from collections.abc import Mapping
from contextlib import suppress

from penstock.controller.office import Office
from penstock.controller.repair import Unclean, repair
from penstock.controller.topic_life import unfinished
from penstock.metadata import paths
from penstock.metadata.image import Broker, ImageDelta
from penstock.metadata.refusal import BadVersion, NoNode
from penstock.metadata.store import Delete
from penstock.types import BrokerId


async def brokers_changed(office: Office, now: Mapping[BrokerId, Broker], unclean: Unclean) -> None:
    """Take over who is registered. A broker with another epoch has died and come back: it leaves
    every ISR that has another live member, and is led back in once it has caught up.
    """
    known = office.image.brokers
    dead = [each for each in known.values() if _epoch(now, each.id) != each.epoch]
    joined = [each for each in now.values() if _epoch(known, each.id) != each.epoch]
    if dead:
        office.image = office.image.apply(ImageDelta(brokers={each.id: None for each in dead}))
        for each in dead:
            office.leaving.pop(each.id, None)
        office.failed = {(at, p) for at, p in office.failed if at in office.image.brokers}
        await repair(office, unclean)
    if joined:
        office.image = office.image.apply(ImageDelta(brokers={each.id: each for each in joined}))
        ids = [each.id for each in joined]
        await repair(office, unclean, joined=ids, stopped=unfinished(office, ids))


def _epoch(brokers: Mapping[BrokerId, Broker], broker: BrokerId) -> int | None:
    found = brokers.get(broker)
    return None if found is None else found.epoch


async def bury(office: Office, broker: BrokerId, epoch: int) -> None:
    """Remove the registration of a broker at whose address nobody listens any more.

    Safe even if it lives: it may not change an ISR in its old epoch, and registers anew.
    """
    if _epoch(office.image.brokers, broker) == epoch:
        path = paths.broker(broker)
        node = (await office.store.get_many([path])).get(path)
        if node is not None and node.created_zxid == epoch:
            with suppress(BadVersion, NoNode):
                await office.term.write(Delete(path, node.version))
