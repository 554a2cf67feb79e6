"""The shared part of OffsetCommit and TxnOffsetCommit."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from penstock.broker.context import Context
from penstock.broker.handling.turns import KEYS_A_TURN, PARTITIONS_A_TURN
from penstock.broker.translate.pending_replies import code_for
from penstock.coordinator.errors import CoordinatorRecordTooLarge
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.coordinator.result import Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage
from penstock.replication.errors import UnknownPartition, UnknownTopicId
from penstock.replication.partition_lookup import topic_name
from penstock.types import TopicPartition, Uuid

PartT_co = TypeVar("PartT_co", bound="NamedPartition", covariant=True)
TopicT = TypeVar("TopicT", bound="NamedTopic[NamedPartition]")

CommitTarget: TypeAlias = TopicPartition | KafkaError
"""A partition in a request, or the error for it."""
Offsets: TypeAlias = tuple[tuple[TopicPartition, CommittedOffset], ...]
"""One entry for each target that is a partition, in the order of the request."""

LEAST_BYTES: Final = 40
"""The least size of a committed offset's record, without the names of its group and topic."""
MOST_OFFSETS: Final = 20_000
"""The most offsets in one request, however well they compress. They become one batch, written in
one loop turn; this many fill a batch without compression.
"""
BEST_COMPRESSION: Final = 50
MOST_BYTES: Final = 1 << 22
"""The most bytes of one request's offsets, however well they compress: a thousand offsets with the
longest metadata.
"""
USUAL_BYTES: Final = 1 << 20
"""The assumed batch limit if the group's coordinator is another broker."""


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
) -> Generator[None, None, CoordinatorRecordTooLarge | None]:
    """An error if the offsets certainly do not fit into one batch: offsets of a request are written
    together. Checked before their records are built, which takes seconds, and bounds the work of
    the loop turn that writes them.
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
            # Longer metadata is refused, and not written.
            size += sum(length for length in lengths if length <= longest)
        if count % KEYS_A_TURN == 0:
            yield
    if offsets > MOST_OFFSETS:
        return CoordinatorRecordTooLarge(
            f"{offsets} offsets in one request; at most {MOST_OFFSETS}"
        )
    if size <= limit:
        return None
    return CoordinatorRecordTooLarge(f"at least {size} bytes for {CONSUMER_OFFSETS}-{index}")


def all_targets(
    group: str, topics: Sequence[TopicT], image: ClusterImage, ctx: Context, *, by_id: bool
) -> Generator[None, None, list[tuple[TopicT, list[CommitTarget]]]]:
    """Each topic with its targets, in request order; if there are too many, all are refused."""
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
    """The targets and offsets updated to the current image, for a commit that took several turns.

    A deleted topic would keep its offsets for ever, and a topic created again would lose its own.
    Topics only gain partitions, so comparing the id is enough.
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
    replies: Sequence[Refused], code_overrides: dict[type[KafkaError], ErrorCode]
) -> Callable[[CommitTarget], ErrorCode]:
    """Returns a function for the error code of each target, to be called in order.

    `code_overrides` maps errors to the codes that the API has for them.
    """
    rest = iter(replies)

    def code(target: CommitTarget) -> ErrorCode:
        refused = target if isinstance(target, KafkaError) else next(rest)
        if refused is not None and type(refused) in code_overrides:
            return code_overrides[type(refused)]
        return code_for(refused)

    return code
