"""Requests of brokers to the share coordinator: keys 83 to 87.

Kafka serves them to any client with ClusterAction; Penstock only to brokers of its cluster. So
these cases need a Penstock cluster: see `tests/contract/test_share_state_oracle.py`.
"""

from typing import Any

from differential.case import Case, Eventually, Step, case
from differential.cases.share_groups import READING, UNKNOWN
from differential.requests import ONE
from differential.symbols import topic_id
from penstock.types import Uuid
from penstock.wire.messages import delete_share_group_state as deletion
from penstock.wire.messages import initialize_share_group_state as initialization
from penstock.wire.messages import read_share_group_state as reading
from penstock.wire.messages import read_share_group_state_summary as summary
from penstock.wire.messages import write_share_group_state as writing

COORDINATOR_ERRORS = {14, 15, 16}
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
Batch = tuple[int, int, int, int]
"""First and last offset, state, deliveries."""


def initialize(
    epoch: int = 0,
    start: int = 0,
    *,
    group: str = "~s",
    partition: int = 0,
    topic: Uuid | None = None,
) -> initialization.InitializeShareGroupStateRequest:
    part = initialization.PartitionData(partition, epoch, start)
    return initialization.InitializeShareGroupStateRequest(
        group, [initialization.InitializeStateData(_topic(topic), [part])]
    )


def read(
    leader_epoch: int = 0, *, group: str = "~s", partition: int = 0, topic: Uuid | None = None
) -> reading.ReadShareGroupStateRequest:
    part = reading.PartitionData(partition, leader_epoch)
    return reading.ReadShareGroupStateRequest(group, [reading.ReadStateData(_topic(topic), [part])])


def write(
    *batches: Batch,
    epoch: int = 0,
    leader_epoch: int = 0,
    start: int = 0,
    done: int = 0,
    group: str = "~s",
    partition: int = 0,
    topic: Uuid | None = None,
) -> writing.WriteShareGroupStateRequest:
    states = [writing.StateBatch(*each) for each in batches]
    part = writing.PartitionData(partition, epoch, leader_epoch, start, done, states)
    return writing.WriteShareGroupStateRequest(
        group, [writing.WriteStateData(_topic(topic), [part])]
    )


def summarise(
    leader_epoch: int = 0, *, group: str = "~s", partition: int = 0, topic: Uuid | None = None
) -> summary.ReadShareGroupStateSummaryRequest:
    part = summary.PartitionData(partition, leader_epoch)
    return summary.ReadShareGroupStateSummaryRequest(
        group, [summary.ReadStateSummaryData(_topic(topic), [part])]
    )


def delete(
    *, group: str = "~s", partition: int = 0, topic: Uuid | None = None
) -> deletion.DeleteShareGroupStateRequest:
    part = deletion.PartitionData(partition)
    return deletion.DeleteShareGroupStateRequest(
        group, [deletion.DeleteStateData(_topic(topic), [part])]
    )


def _topic(topic: Uuid | None) -> Uuid:
    return topic_id("~t") if topic is None else topic


def is_coordinated(reply: Any) -> bool:
    return not any(
        part.error_code in COORDINATOR_ERRORS for each in reply.results for part in each.partitions
    )


READY: tuple[Step, ...] = (*READING, Eventually(summarise(), is_coordinated))
"""A member of another group has read, so that the state topic exists."""
BEGUN: tuple[Step, ...] = (*READY, initialize(start=5))

INITIALIZE = [
    case("a start", *READY, initialize(start=5), summarise(), topics=ONE,
         api=initialization.InitializeShareGroupStateRequest),
    case("twice", *BEGUN, initialize(start=9), read(), topics=ONE,
         api=initialization.InitializeShareGroupStateRequest),
    case("again with the next epoch", *BEGUN, write((5, 6, ACKNOWLEDGED, 1), start=5),
         initialize(epoch=1, start=9), read(), topics=ONE,
         api=initialization.InitializeShareGroupStateRequest),
    case("with an older epoch", *READY, initialize(epoch=3), initialize(epoch=2), topics=ONE),
    case("a topic that is not there", *READY, initialize(topic=UNKNOWN), topics=ONE),
    case("a partition that is not there", *READY, initialize(partition=7), topics=ONE),
    case("a negative partition", *READY, initialize(partition=-1), topics=ONE),
    case("no group", *READY, initialize(group=""), topics=ONE),
    case("nothing", *READY, initialization.InitializeShareGroupStateRequest("~s", []), topics=ONE),
]  # fmt: skip

READ = [
    case("what was begun", *BEGUN, read(), topics=ONE),
    case("what nobody began", *READY, read(), topics=ONE),
    case("with an older leader", *BEGUN, read(5), read(4), topics=ONE),
    case("a topic that is not there", *READY, read(topic=UNKNOWN), topics=ONE),
    case("no group", *READY, read(group=""), topics=ONE),
    case("nothing", *READY, reading.ReadShareGroupStateRequest("~s", []), topics=ONE),
]  # fmt: skip

WRITE = [
    case("batches", *BEGUN, write((5, 9, ACKNOWLEDGED, 1), (10, 14, AVAILABLE, 2), start=5), read(),
         topics=ONE, api=writing.WriteShareGroupStateRequest),
    case("over others", *BEGUN, write((5, 14, AVAILABLE, 1), start=5),
         write((7, 8, ARCHIVED, 2), (12, 20, ACKNOWLEDGED, 1), start=-1), read(), topics=ONE,
         api=writing.WriteShareGroupStateRequest),
    case("a new start", *BEGUN, write((5, 14, AVAILABLE, 1), start=5), write(start=10), read(),
         summarise(), topics=ONE, api=writing.WriteShareGroupStateRequest),
    case("equal neighbours", *BEGUN, write((5, 9, ACKNOWLEDGED, 1), start=5),
         write((10, 14, ACKNOWLEDGED, 1), start=5), read(), topics=ONE,
         api=writing.WriteShareGroupStateRequest),
    case("how many are done", *BEGUN, write((6, 9, ACKNOWLEDGED, 1), start=5, done=4), summarise(),
         topics=ONE, api=writing.WriteShareGroupStateRequest),
    case("what nobody began", *READY, write((0, 1, ACKNOWLEDGED, 1)), topics=ONE),
    case("with an older state", *READY, initialize(epoch=3), write(epoch=2), topics=ONE),
    case("with a newer state", *BEGUN, write(epoch=2), topics=ONE),
    case("with an older leader", *BEGUN, write(leader_epoch=5, start=5),
         write(leader_epoch=4, start=5), topics=ONE),
    case("a topic that is not there", *READY, write(topic=UNKNOWN), topics=ONE),
    case("no group", *READY, write(group=""), topics=ONE),
    case("nothing", *READY, writing.WriteShareGroupStateRequest("~s", []), topics=ONE),
]  # fmt: skip

DELETE = [
    case("what was begun", *BEGUN, delete(), read(), summarise(), topics=ONE,
         api=deletion.DeleteShareGroupStateRequest),
    case("twice", *BEGUN, delete(), delete(), topics=ONE),
    case("what nobody began", *READY, delete(), topics=ONE),
    case("a topic that is not there", *READY, delete(topic=UNKNOWN), topics=ONE),
    case("no group", *READY, delete(group=""), topics=ONE),
]  # fmt: skip

SUMMARY = [
    case("what was begun", *BEGUN, summarise(), topics=ONE),
    case("what nobody began", *READY, summarise(), topics=ONE),
    case("with an older leader", *BEGUN, read(5), summarise(4), topics=ONE),
    case("a topic that is not there", *READY, summarise(topic=UNKNOWN), topics=ONE),
    case("no group", *READY, summarise(group=""), topics=ONE),
]  # fmt: skip

CASES: list[Case] = [*INITIALIZE, *READ, *WRITE, *DELETE, *SUMMARY]
