"""The driver's requests: partitions and offsets of topics, and commits of a group's progress."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.client.commit import check_committed, commit_request
from penstock.client.errors import BrokerRefused
from penstock.client.listing import (
    EARLIEST,
    LATEST,
    IsolationLevel,
    ListedOffset,
    by_topic,
    list_offsets_request,
    listed_offsets,
)
from penstock.client.metadata import TopicMetadata
from penstock.client.route import ToBroker, ToCoordinator
from penstock.errors import ErrorCode
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.source.bounds import (
    NOT_FOUND,
    Bound,
    GivenTimes,
    at_end,
    resolved_offsets,
    timestamps_to_list,
)
from penstock.spark.source.subscription import Subscription, covers, subscribed, wanted_names
from penstock.types import NO_UUID, Offset, TopicPartition, Uuid
from penstock.wire.messages.list_offsets import ListOffsetsResponse
from penstock.wire.messages.offset_commit import OffsetCommitResponse


class NotKnownYet(BrokerRefused):
    """A broker does not know a partition that was read before."""

    def __init__(self, topic_partition: TopicPartition, *, may_be_deleted: bool) -> None:
        about = f"{topic_partition}, which the broker does not know yet"
        super().__init__(ErrorCode.LEADER_NOT_AVAILABLE, about)
        self.may_be_deleted = may_be_deleted


def topics_of(
    client: BlockingClient,
    subscription: Subscription,
    known: Mapping[TopicPartition, Uuid] = {},
    *,
    waits_for_deleted: bool = False,
) -> dict[str, TopicMetadata]:
    """The existing topics that a subscription may cover.

    Asks again while a broker does not know all partitions in `known`, given with the ids of their
    topics: a topic never loses a partition. With `waits_for_deleted` it also asks again for topics
    that the broker does not know, and for partitions of topics without an id: only after the whole
    timeout are these taken for deleted.
    """
    found: dict[str, TopicMetadata] = {}

    def attempt() -> dict[str, TopicMetadata]:
        found.clear()
        found.update(client.existing(wanted_names(subscription)))
        unclear: TopicPartition | None = None
        for each, topic_id in known.items():
            topic = found.get(each.topic)
            if topic is not None and each.partition in topic.partitions:
                continue
            if topic is not None and topic.id == topic_id != NO_UUID:
                raise NotKnownYet(each, may_be_deleted=False)
            is_unclear = topic is None or topic_id == NO_UUID
            if waits_for_deleted and is_unclear and covers(subscription, each):
                unclear = each
        if unclear is not None:  # only now: a deleted topic must not hide a partition that exists
            raise NotKnownYet(unclear, may_be_deleted=True)
        return found

    try:
        return client.retrying(attempt)
    except NotKnownYet as error:
        if not error.may_be_deleted:
            raise
        return found


def partitions_of(
    client: BlockingClient, subscription: Subscription
) -> tuple[list[TopicPartition], list[str]]:
    """The partitions that a subscription covers now, and what it names that is missing."""
    return subscribed(subscription, topics_of(client, subscription))


def list_offsets(
    client: BlockingClient, wanted: Mapping[TopicPartition, int], isolation: IsolationLevel
) -> dict[TopicPartition, Offset]:
    """For each partition the first offset at or after a time in ms, or `EARLIEST` or `LATEST`."""

    def attempt() -> dict[TopicPartition, ListedOffset]:
        found: dict[TopicPartition, ListedOffset] = {}
        timeout_ms = client.settings.request_timeout_ms
        for leader, partitions in client.by_leader(wanted).items():
            request = list_offsets_request(
                {each: wanted[each] for each in partitions}, isolation, timeout_ms
            )
            response = client.connection(ToBroker(leader)).call(request, ListOffsetsResponse)
            found |= listed_offsets(response)
        return found

    return {each: listed.offset for each, listed in client.retrying(attempt).items()}


def earliest(
    client: BlockingClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Offset]:
    wanted = dict.fromkeys(partitions, EARLIEST)
    return list_offsets(client, wanted, IsolationLevel.READ_UNCOMMITTED)


def latest(
    client: BlockingClient, partitions: Iterable[TopicPartition], isolation: IsolationLevel
) -> dict[TopicPartition, Offset]:
    """The end that readers of this isolation level see: high watermark or last stable offset."""
    return list_offsets(client, dict.fromkeys(partitions, LATEST), isolation)


class ResolvedBound(NamedTuple):
    """The offset that a bound means in each partition, and where that is the log's present end."""

    offsets: dict[TopicPartition, Offset]
    at_end: frozenset[TopicPartition]


def resolve(
    client: BlockingClient,
    bound: Bound,
    partitions: list[TopicPartition],
    isolation: IsolationLevel,
) -> ResolvedBound:
    found = list_offsets(client, timestamps_to_list(bound, partitions), isolation)
    late: list[TopicPartition] = []
    if isinstance(bound, GivenTimes):
        late = [each for each, offset in found.items() if offset == NOT_FOUND]
    offsets = resolved_offsets(bound, found, latest(client, late, isolation))
    return ResolvedBound(offsets, at_end(bound, found))


def commit(client: BlockingClient, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Commit the offsets to the group, so that its lag shows the job's progress."""
    ids: dict[str, Uuid] = {
        name: topic.id for name, topic in client.existing(by_topic(offsets)).items()
    }
    known = {each: offset for each, offset in offsets.items() if each.topic in ids}
    if known:
        client.call(
            commit_request(group, known, ids),
            OffsetCommitResponse,
            to=ToCoordinator(group),
            check=lambda response: check_committed(group, response),
        )
