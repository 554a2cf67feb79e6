"""Shared by OffsetCommit and TxnOffsetCommit."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from penstock.broker.context import Context
from penstock.broker.handling.turns import KEYS_A_TURN, PARTITIONS_A_TURN
from penstock.broker.translate.pending_replies import code_for
from penstock.coordinator.errors import RecordTooLarge
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.coordinator.result import Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage
from penstock.metadata.topic_names import UnknownTopicId, topic_name
from penstock.replication.partitions import UnknownPartition
from penstock.types import TopicPartition, Uuid

PartT_co = TypeVar("PartT_co", bound="NamedPartition", covariant=True)
TopicT = TypeVar("TopicT", bound="NamedTopic[NamedPartition]")

CommitTarget: TypeAlias = TopicPartition | KafkaError
"""A partition in a request, or why no offset can be committed for it."""
Offsets: TypeAlias = tuple[tuple[TopicPartition, CommittedOffset], ...]
"""One for each target that is a partition, in the order of the request."""

LEAST_BYTES: Final = 40
"""Of the record of a committed offset, beside the names of its group and topic."""
MOST_OFFSETS: Final = 20_000
"""In one request, whatever they compress to. All its offsets become one batch, in one loop turn;
as many as this fill one without compression.
"""
BEST_COMPRESSION: Final = 50
MOST_BYTES: Final = 1 << 22
"""Of one request's offsets, whatever they compress to: a thousand with the longest metadata."""
USUAL_BYTES: Final = 1 << 20
"""The limit of a batch where that is not known: the group's coordinator is another broker."""


class NamedPartition(Protocol):
    """A partition of a topic in either request."""

    @property
    def partition_index(self) -> int: ...

    @property
    def committed_metadata(self) -> str | None: ...


class NamedTopic(Protocol[PartT_co]):
    """A topic in either request."""

    @property
    def name(self) -> str: ...

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> Sequence[PartT_co]: ...


def too_large(
    group: str, topics: Sequence[NamedTopic[NamedPartition]], ctx: Context
) -> Generator[None, None, RecordTooLarge | None]:
    """Offsets of one request are written together. Whether they certainly do not fit is told before
    a record is made of each, which takes seconds. So few are written in one loop turn.
    """
    services = ctx.services
    index = services.coordination.groups.partition_of(group)
    partition = services.replicas.partitions.find(CONSUMER_OFFSETS, index)
    limit = USUAL_BYTES if partition is None else partition.rules.max_message_bytes
    if services.config.group.offsets_topic_compression_codec:
        limit = max(limit, min(limit * BEST_COMPRESSION, MOST_BYTES))
    longest = services.config.group.offset_metadata_max_bytes
    least_bytes = LEAST_BYTES + len(group)
    size = offsets = 0
    for count, each in enumerate(topics, 1):
        offsets += len(each.partitions)
        size += len(each.partitions) * (least_bytes + len(each.name))
        if offsets <= MOST_OFFSETS:
            lengths = (len(part.committed_metadata or "") for part in each.partitions)
            size += sum(length for length in lengths if length <= longest)  # others are refused
        if count % KEYS_A_TURN == 0:
            yield
    if offsets > MOST_OFFSETS:
        return RecordTooLarge(f"{offsets} offsets in one request; at most {MOST_OFFSETS}")
    if size <= limit:
        return None
    return RecordTooLarge(f"at least {size} bytes for {CONSUMER_OFFSETS}-{index}")


def all_targets(
    group: str, topics: Sequence[TopicT], image: ClusterImage, ctx: Context, *, by_id: bool
) -> Generator[None, None, list[tuple[TopicT, list[CommitTarget]]]]:
    """Each topic with its targets, in the order of the request; too many are all refused."""
    refused: KafkaError | None = yield from too_large(group, topics, ctx)
    found: list[tuple[TopicT, list[CommitTarget]]] = []
    count = 0
    for topic in topics:
        count += 1 + len(topic.partitions)
        if count >= PARTITIONS_A_TURN:
            count = 0
            yield
        if refused is not None:
            found.append((topic, [refused] * len(topic.partitions)))
            continue
        try:
            name = topic_name(topic.name, topic.topic_id, image, by_id=by_id)
        except KafkaError as error:
            found.append((topic, [error] * len(topic.partitions)))
            continue
        parts = (TopicPartition(name, part.partition_index) for part in topic.partitions)
        found.append((topic, [_target(each, image) for each in parts]))
    return found


def each_target(
    named: Iterable[tuple[NamedTopic[PartT_co], list[CommitTarget]]],
) -> Iterator[tuple[PartT_co, CommitTarget]]:
    """Each partition of the request with its target."""
    for topic, targets in named:
        yield from zip(topic.partitions, targets, strict=True)


def without_deleted(
    named: list[tuple[TopicT, list[CommitTarget]]],
    offsets: Offsets,
    image: ClusterImage,
    *,
    by_id: bool,
) -> tuple[list[tuple[TopicT, list[CommitTarget]]], Offsets]:
    """The targets and their offsets as of now, for a commit that took turns since they were found.

    A deleted topic would keep its offsets for ever, and one that was made anew would lose its own.
    Topics only get more partitions, so that the id tells everything.
    """
    ids = {target.topic: committed.topic_id for target, committed in offsets}
    gone = {
        name
        for name, topic_id in ids.items()
        if (topic := image.topics.get(name)) is None or topic.id != topic_id
    }
    if not gone:
        return named, offsets

    def now(target: CommitTarget) -> CommitTarget:
        if isinstance(target, KafkaError) or target.topic not in gone:
            return target
        text = f"{target} was deleted meanwhile"
        return UnknownTopicId(text) if by_id else UnknownPartition(text)

    found = [(topic, [now(each) for each in targets]) for topic, targets in named]
    return found, tuple(each for each in offsets if each[0].topic not in gone)


def _target(target: TopicPartition, image: ClusterImage) -> CommitTarget:
    return target if image.partition(target) else UnknownPartition(f"{target} does not exist")


def codes(
    replies: Sequence[Refused], known_as: dict[type[KafkaError], ErrorCode]
) -> Callable[[CommitTarget], ErrorCode]:
    """A function that returns the error code of each target, in order. `known_as` are errors for
    which the API has another code.
    """
    rest = iter(replies)

    def code(target: CommitTarget) -> ErrorCode:
        refused = target if isinstance(target, KafkaError) else next(rest)
        if refused is not None and type(refused) in known_as:
            return known_as[type(refused)]
        return code_for(refused)

    return code
