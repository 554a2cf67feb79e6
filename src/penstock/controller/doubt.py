"""Brokers that may lack records are trusted again once nothing rests on what they had.

A broker whose machine went down says so when it registers, and leaves every ISR that has another
live member. Back in one it comes by what it has now. Once it is in none any more from before, the
controller strikes the word from its registration: else two machines that once lost power would
never again take over from a third.
"""

import logging
from contextlib import suppress

from msgspec import UNSET
from msgspec.structs import replace

from penstock.controller.office import Office
from penstock.metadata import paths
from penstock.metadata.image import Broker, ImageDelta, Partition
from penstock.metadata.records import decode, encode
from penstock.metadata.refusal import BadVersion, NoNode
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Set
from penstock.types import BrokerId

logger = logging.getLogger(__name__)


async def clear(office: Office) -> None:
    """Trust those again whose doubt is over."""
    for broker in office.doubtful:
        if not any(
            rests_on(partition, broker)
            for topic in office.image.topics.values()
            for partition in topic.partitions.values()
        ):
            await _trust(office, office.image.brokers[broker])


def rests_on(partition: Partition, broker: BrokerId) -> bool:
    """Whether it may be in sync by what it had before. A leader was elected since it came back:
    its log is what counts, whatever it lacks.
    """
    return broker in partition.isr and broker != partition.leader


async def _trust(office: Office, broker: Broker) -> None:
    path = paths.broker(broker.id)
    node = (await office.store.get_many([path])).get(path)
    if node is None or node.created_zxid != broker.epoch:
        return  # it is another's life by now, of which we hear soon
    registration = replace(decode(BrokerRegistration, node), page_cache_lost=UNSET)
    with suppress(BadVersion, NoNode):
        await office.term.write(Set(path, encode(registration), node.version))
        trusted = replace(broker, page_cache_lost=False)
        office.image = office.image.apply(ImageDelta(brokers={broker.id: trusted}))
        logger.info("broker %s may lead again what it copies", broker.id)
