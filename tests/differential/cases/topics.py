"""CreateTopics, DeleteTopics, CreatePartitions."""

from typing import Any

from differential.case import Case, case
from differential.cases.metadata import NAMES_REFUSED, STRANGE_ID
from differential.requests import ONE, THREE, gone, seen, topic
from differential.rules import ignored
from differential.symbols import topic_id
from penstock.types import NO_UUID
from penstock.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def _create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)


def _new(
    name: str = "~n",
    partitions: int = 1,
    copies: int = 1,
    *,
    assigned: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=copies,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assigned or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def _assigned(name: str, assigned: dict[int, list[int]], **more: int) -> Case:
    counts = {"partitions": -1, "copies": -1, **more}
    return case(name, _create(_new(assigned=assigned, **counts)))  # type: ignore[arg-type]  # ints


CONFIGS: dict[str, dict[str, str | None]] = {
    "compaction": {"cleanup_policy": "compact"},
    "both policies": {"cleanup_policy": "compact,delete"},
    "no policy": {"cleanup_policy": ""},
    "an unknown policy": {"cleanup_policy": "burn"},
    "several": {"retention_ms": "1000", "segment_bytes": "1048576", "max_message_bytes": "99"},
    "retention for ever": {"retention_ms": "-1"},
    "retention below for ever": {"retention_ms": "-2"},
    "an invalid number": {"retention_ms": "soon"},
    "a number with blanks": {"retention_ms": " 1000 "},
    "a number with a sign": {"retention_ms": "+1000"},
    "a fraction for a number": {"retention_ms": "10.5"},
    "a number too large for its type": {"segment_bytes": "2147483648"},
    "a segment below the least": {"segment_bytes": "13"},
    "a ratio above one": {"min_cleanable_dirty_ratio": "1.1"},
    "a ratio": {"min_cleanable_dirty_ratio": "0.25"},
    "a boolean": {"preallocate": "TRUE"},
    "an invalid boolean": {"preallocate": "yes"},
    "an unknown name": {"no_such_setting": "1"},
    "an empty name": {"": "1"},
    "a null value": {"retention_ms": None},
    "an empty number": {"retention_ms": ""},
    "a codec": {"compression_type": "zstd"},
    "an unknown codec": {"compression_type": "rar"},
    "a codec's level": {"compression_type": "gzip", "compression_gzip_level": "9"},
    "a codec's level too high": {"compression_gzip_level": "10"},
    "a timestamp type": {"message_timestamp_type": "LogAppendTime"},
    "an unknown timestamp type": {"message_timestamp_type": "Never"},
    "min.insync.replicas of zero": {"min_insync_replicas": "0"},
    "throttled replicas": {"leader_replication_throttled_replicas": "0:0,1:0"},
    "throttled replicas, all": {"leader_replication_throttled_replicas": "*"},
    "throttled replicas that are none": {"leader_replication_throttled_replicas": "x"},
    "remote storage on": {"remote_storage_enable": "true"},
    "local retention above retention": {"local_retention_ms": "10", "retention_ms": "5"},
    "a removed setting": {"message_format_version": "3.0"},
}

CREATE = [
    case("one partition", _create(_new())),
    case("ten partitions", _create(_new(partitions=10))),
    case("default counts", _create(_new(partitions=-1, copies=-1)), since=4),
    case("default counts, before they are allowed",
         _create(_new(partitions=-1, copies=-1)), until=3),
    case("no partitions", _create(_new(partitions=0))),
    case("-2 partitions", _create(_new(partitions=-2))),
    case("no copies", _create(_new(copies=0))),
    case("-2 copies", _create(_new(copies=-2))),
    case("more copies than brokers", _create(_new(copies=2))),
    case("only validated", _create(_new(partitions=2), validate_only=True), gone("~n")),
    case("only validated, and wrong", _create(_new(copies=3), validate_only=True)),
    case("only validated, with a setting", _create(_new(retention_ms="5"), validate_only=True)),
    case("only validated, exists", _create(_new("~t"), validate_only=True), topics=ONE),
    case("exists", _create(_new("~t")), topics=ONE),
    case("twice in one request", _create(_new(), _new())),
    case("good and bad at once", _create(_new(), _new("~m", copies=3), _new("a b"))),
    case("nothing", _create()),
    case("a name that collides by its dots", _create(_new("~a.b"), _new("~a_b"))),
    case("a name that collides with one that exists", _create(_new("~a.b")),
         topics=(topic("~a_b"),)),
    case("an internal topic's name", _create(_new("__consumer_offsets"), validate_only=True),
         rules={"CreateTopicsResponse": {"topics.topic_id": ignored}}),
    *(case(f"a name {what}", _create(_new(name))) for what, name in NAMES_REFUSED.items()),
    *(case(f"with {what}", _create(_new(**configs)))  # type: ignore[arg-type]  # settings only
      for what, configs in CONFIGS.items()),
    case("the same setting twice",
         _create(CreatableTopic(name="~n", num_partitions=1, replication_factor=1, configs=[
             CreatableTopicConfig(name="retention.ms", value="1"),
             CreatableTopicConfig(name="retention.ms", value="2")]))),
    _assigned("assigned", {0: [0], 1: [0]}),
    _assigned("assigned to nobody", {0: []}),
    _assigned("assigned to a stranger", {0: [7]}),
    _assigned("assigned twice to the same", {0: [0, 0]}),
    _assigned("assigned with a gap", {0: [0], 2: [0]}),
    _assigned("assigned not from zero", {1: [0]}),
    _assigned("assigned unevenly", {0: [0], 1: [0, 1]}),
    _assigned("assigned to a negative broker", {0: [-1]}),
    _assigned("assigned and counted", {0: [0]}, partitions=1),
    _assigned("assigned and copied", {0: [0]}, copies=1),
    case("assigned twice for one partition",
         _create(CreatableTopic(name="~n", num_partitions=-1, replication_factor=-1, assignments=[
             CreatableReplicaAssignment(partition_index=0, broker_ids=[0]),
             CreatableReplicaAssignment(partition_index=0, broker_ids=[0])]))),
]  # fmt: skip


def _delete(*topics: DeleteTopicState) -> DeleteTopicsRequest:
    """By names below version 6."""
    return DeleteTopicsRequest(
        topics=list(topics), topic_names=[t.name for t in topics if t.name], timeout_ms=5000
    )


def _named(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name)


def _with_id(id_: Any) -> DeleteTopicState:
    return DeleteTopicState(topic_id=id_)


DELETE = [
    case("one", _delete(_named("~t")), gone("~t"), topics=ONE),
    case("two", _delete(_named("~t"), _named("~u")), topics=(topic(), topic("~u"))),
    case("an unknown one", _delete(_named("~none"))),
    case("known and unknown", _delete(_named("~none"), _named("~t")), topics=ONE),
    case("twice in one request", _delete(_named("~t"), _named("~t")), topics=ONE),
    case("twice", _delete(_named("~t")), gone("~t"), _delete(_named("~t")), topics=ONE),
    case("nothing", _delete()),
    case("a name with a blank", _delete(_named("a b"))),
    case("by id", _delete(_with_id(topic_id("~t"))), topics=ONE, since=6),
    case("by an unknown id", _delete(_with_id(STRANGE_ID)), since=6),
    case("neither name nor id", _delete(_with_id(NO_UUID)), since=6),
    case("name and id at once", _delete(DeleteTopicState(name="~t", topic_id=topic_id("~t"))),
         topics=ONE, since=6),
    case("by id and by name", _delete(_named("~t"), _with_id(topic_id("~t"))), topics=ONE,
         since=6),
    case("by id twice", _delete(_with_id(topic_id("~t")), _with_id(topic_id("~t"))), topics=ONE,
         since=6),
    case("an empty name", _delete(_named("")), since=6),
    case("created anew", _delete(_named("~t")), gone("~t"), _create(_new("~t")),
         seen("~t", 1), _delete(_with_id(topic_id("~t"))), topics=ONE, since=6),
]  # fmt: skip


def _grow(
    count: int, *, of: str = "~t", to: list[list[int]] | None = None, validate_only: bool = False
) -> CreatePartitionsRequest:
    assignments = None if to is None else [CreatePartitionsAssignment(broker_ids=b) for b in to]
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=of, count=count, assignments=assignments)],
        timeout_ms=5000,
        validate_only=validate_only,
    )


GROW = [
    case("from one to three", _grow(3), seen("~t", 3), topics=ONE),
    case("only validated", _grow(3, validate_only=True), seen("~t", 1), topics=ONE),
    case("to the same", _grow(3), topics=THREE),
    case("to fewer", _grow(2), topics=THREE),
    case("to none", _grow(0), topics=ONE),
    case("to -1", _grow(-1), topics=ONE),
    case("an unknown topic", _grow(3, of="~none")),
    case("an empty name", _grow(3, of="")),
    case("a name with a blank", _grow(3, of="a b")),
    case("assigned", _grow(3, to=[[0], [0]]), topics=ONE),
    case("assigned too few", _grow(3, to=[[0]]), topics=ONE),
    case("assigned too many", _grow(2, to=[[0], [0]]), topics=ONE),
    case("assigned to nobody", _grow(2, to=[[]]), topics=ONE),
    case("assigned none", _grow(2, to=[]), topics=ONE),
    case("assigned to a stranger", _grow(2, to=[[9]]), topics=ONE),
    case("assigned twice to the same", _grow(2, to=[[0, 0]]), topics=ONE),
    case("assigned to more copies", _grow(2, to=[[0, 1]]), topics=ONE),
    case("an internal topic", _grow(7, of="__consumer_offsets", validate_only=True)),
    case("nothing", CreatePartitionsRequest(timeout_ms=5000)),
    case("the same topic twice",
         CreatePartitionsRequest(timeout_ms=5000, topics=[
             CreatePartitionsTopic(name="~t", count=2, assignments=None),
             CreatePartitionsTopic(name="~t", count=3, assignments=None)]), topics=ONE),
]  # fmt: skip

CASES: list[Case] = [*CREATE, *DELETE, *GROW]
