"""Partitions whose leader or followers are gone get those that are there.

One rule for a broker that died, one that leaves, one that came back, and a directory that failed:
whoever is live now is looked at, and the partitions that would be led otherwise are written.
"""

import logging
from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from penstock.controller import doubt
from penstock.controller.change import PartitionChange, StoppedReplicas
from penstock.controller.election import Elected, elected
from penstock.controller.office import Office
from penstock.controller.partition_states import bring_online, write_elected
from penstock.metadata.image import ImageDelta, Partition
from penstock.metadata.records import NO_LEADER
from penstock.types import BrokerId, TopicPartition

logger = logging.getLogger(__name__)

Unclean = Callable[[str], bool]
"""Whether the topic allows a leader that is not in sync."""


def repairs(
    office: Office, unclean: Unclean, *, suspected: Collection[BrokerId] = ()
) -> dict[TopicPartition, Elected]:
    """New leaders and ISRs for the partitions that need them.

    Suspected brokers leave every ISR that has another live member.
    """
    outcomes, doubtful = {}, office.doubtful
    for where, partition in _decided_partitions(office):
        live = office.live(where, partition.replicas)
        trusted = [each for each in live if each not in suspected]
        if any(each in trusted for each in partition.isr):
            live = trusted
        # Who came back with less than it had, while there was no controller to see it go.
        is_in_doubt = (
            partition.leader in doubtful and partition.controller_epoch < office.term.epoch
        )
        is_whole = partition.leader in live and all(each in live for each in partition.isr)
        is_outrun = where in office.outrun
        if is_whole and not is_in_doubt and not is_outrun:
            continue
        before = replace(partition, leader=NO_LEADER) if is_in_doubt else partition
        outcome = elected(before, live, unclean=False, doubtful=doubtful)
        if outcome.leader == NO_LEADER:
            # One that is about to stop leads until it is gone, rather than nobody, and rather than
            # one that lacks records: it may catch up before the other has stopped.
            present = office.present(where, partition.replicas)
            outcome = elected(before, present, unclean=False, doubtful=doubtful)
        if outcome.leader == NO_LEADER and unclean(where.topic):
            outcome = elected(before, live, unclean=True, doubtful=doubtful)
        if outcome.leader in doubtful and outcome.leader != partition.leader:
            logger.warning("%s: broker %s leads, which may lack records", where, outcome.leader)
        if is_outrun or (outcome.leader, outcome.isr) != (partition.leader, partition.isr):
            outcomes[where] = outcome
    return outcomes


async def repair(
    office: Office,
    unclean: Unclean,
    *,
    joined: Iterable[BrokerId] = (),
    stopped: Iterable[StoppedReplicas] = (),
) -> None:
    """Write what is needed and tell everybody; those who joined hear of everything."""
    changes = {
        each.where: each for each in await bring_online(office, office.image.topics.values())
    }
    changes |= await write_elected(office, repairs(office, unclean))
    delta = {each.where: each.state for each in changes.values()}
    told = {}
    for where, partition in _decided_partitions(office):
        offline = office.offline(where, partition)
        if where not in delta and offline != partition.offline_replicas:
            told[where] = replace(partition, offline_replicas=offline)
    await office.announce(
        ImageDelta(partitions=delta | told),
        partitions=changes.values(),
        told=told,
        stopped=stopped,
        joined=joined,
    )
    await doubt.clear(office)


def changes_of(image_changes: Iterable[PartitionChange]) -> ImageDelta:
    return ImageDelta(partitions={each.where: each.state for each in image_changes})


def _decided_partitions(office: Office) -> Iterable[tuple[TopicPartition, Partition]]:
    for topic in office.image.topics.values():
        for index, partition in topic.partitions.items():
            if partition.partition_epoch >= 0:
                yield TopicPartition(topic.name, index), partition
