"""The options of a read: those of the `kafka` format by their names, `groupId`, `shareGroup`."""

import re
from dataclasses import dataclass
from typing import Final

from penstock.client.listing import IsolationLevel
from penstock.errors import ConfigError
from penstock.spark.client.settings import CLIENT, ClientSettings, read_client_settings
from penstock.spark.options import KAFKA, MAX_INT32, SUPPORTED, NoEffect, Options, Unsupported, Use
from penstock.spark.source.admission import TriggerLimits
from penstock.spark.source.bounds import (
    FROM_EARLIEST,
    FROM_LATEST,
    Bound,
    check_batch,
    read_end,
    read_start,
)
from penstock.spark.source.subscription import Subscription, read_subscription

_NO_GROUP: Final = NoEffect("no consumer group is joined; groupId commits progress to one")
_NO_POLL: Final = NoEffect("records are fetched without a consumer's poll loop")
_BYTES_ONLY: Final = Unsupported("keys and values are bytes; cast them in the DataFrame")
_ONLY_STREAMS: Final = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "groupId",
)
_ONLY_BATCHES: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")

_FROM_THE_GROUP: Final = "the group knows where it begins: see its setting share.auto.offset.reset"
_NOT_SHARED: Final = {
    "startingOffsets": _FROM_THE_GROUP,
    "startingTimestamp": _FROM_THE_GROUP,
    "startingOffsetsByTimestamp": _FROM_THE_GROUP,
    "startingOffsetsByTimestampStrategy": _FROM_THE_GROUP,
    "groupId": "a share group keeps its own progress",
    "subscribePattern": "a share group subscribes to topics by name: use subscribe",
    "assign": "a share group divides the partitions itself: use subscribe",
    "minOffsetsPerTrigger": "records that wait for others would be locked meanwhile",
    "maxTriggerDelay": "records that wait for others would be locked meanwhile",
    "kafka.isolation.level": "the group decides: see its setting share.isolation.level",
}
"""Options that do not fit shareGroup, and why."""

_CONSUMER: Final[dict[str, Use]] = {
    "isolation.level": SUPPORTED,
    "max.partition.fetch.bytes": SUPPORTED,
    "fetch.max.wait.ms": SUPPORTED,
    "check.crcs": SUPPORTED,
    "client.rack": SUPPORTED,
    "fetch.min.bytes": NoEffect("a task reads what is there already"),
    "fetch.max.bytes": NoEffect(
        "each task fetches one partition: max.partition.fetch.bytes counts"
    ),
    "group.id": _NO_GROUP,
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "session.timeout.ms": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "partition.assignment.strategy": _NO_GROUP,
    "max.poll.records": _NO_POLL,
    "max.poll.interval.ms": _NO_POLL,
    "exclude.internal.topics": NoEffect("a pattern never matches internal topics"),
    "allow.auto.create.topics": NoEffect("a read never creates a topic"),
    "enable.auto.commit": Unsupported(
        "Spark keeps the offsets; set groupId to commit them to a group"
    ),
    "auto.commit.interval.ms": Unsupported("Spark keeps the offsets; set groupId to commit them"),
    "auto.offset.reset": Unsupported("use startingOffsets"),
    "key.deserializer": _BYTES_ONLY,
    "value.deserializer": _BYTES_ONLY,
}

SOURCE: Final[dict[str, Use]] = {
    "subscribe": SUPPORTED,
    "subscribePattern": SUPPORTED,
    "assign": SUPPORTED,
    "startingOffsets": SUPPORTED,
    "startingTimestamp": SUPPORTED,
    "startingOffsetsByTimestamp": SUPPORTED,
    "startingOffsetsByTimestampStrategy": SUPPORTED,
    "endingOffsets": SUPPORTED,
    "endingTimestamp": SUPPORTED,
    "endingOffsetsByTimestamp": SUPPORTED,
    "failOnDataLoss": SUPPORTED,
    "includeHeaders": SUPPORTED,
    "minPartitions": SUPPORTED,
    "maxRecordsPerPartition": SUPPORTED,
    "maxOffsetsPerTrigger": SUPPORTED,
    "minOffsetsPerTrigger": SUPPORTED,
    "maxTriggerDelay": SUPPORTED,
    "groupId": SUPPORTED,
    "shareGroup": SUPPORTED,
    "valueFormat": SUPPORTED,
    "valueSchema": SUPPORTED,
    "valueSubject": SUPPORTED,
    "schema.registry.url": SUPPORTED,
    "groupIdPrefix": _NO_GROUP,
    "kafkaConsumer.pollTimeoutMs": NoEffect("kafka.default.api.timeout.ms limits the wait"),
    "fetchOffset.numRetries": NoEffect("kafka.default.api.timeout.ms limits the attempts"),
    "fetchOffset.retryIntervalMs": NoEffect("the wait doubles with each attempt"),
    **{KAFKA + name: use for name, use in {**CLIENT, **_CONSUMER}.items()},
}
"""Every option of a read."""

REGISTRY: Final = "schema.registry.url"
CONFLUENT: Final = ("confluent-avro", "confluent-protobuf", "confluent-json")

_TIME: Final = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?")
_TIME_MS: Final = {
    "us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How a task fetches records."""

    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    partition_bytes: int = 4 << 20
    """More than a consumer's default: a task has one partition, and large responses cost least."""
    max_wait_ms: int = 500
    check_crcs: bool = True
    rack: str = ""


@dataclass(frozen=True, slots=True)
class ValueSettings:
    """The format of values, and their columns as an Avro record."""

    format: str
    schema: str
    registry: str = ""
    """URL of the schema registry, for Confluent's formats."""
    subject: str = ""
    """The subject that defines the columns; empty: the options define them."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The settings of driver and tasks. A plain value, which Spark sends with every task."""

    client: ClientSettings
    fetch: FetchSettings
    subscription: Subscription
    start: Bound
    end: Bound
    fail_on_data_loss: bool
    with_headers: bool
    min_partitions: int
    max_records_per_partition: int
    limits: TriggerLimits
    group_id: str | None
    share_group: str | None
    """The share group whose records the stream reads; None: it reads all records."""
    value: ValueSettings | None
    """How values are decoded to a column `fields`; None: values stay bytes."""


def batch_settings(options: Options) -> tuple[SourceSettings, list[str]]:
    """The settings of a batch read, and warnings about options without effect."""
    warnings = options.warnings(SOURCE)
    if "shareGroup" in options:
        raise ConfigError(
            "option shareGroup cannot be used in a batch read: records are accepted when a "
            "stream's micro-batch is committed; use readStream with the trigger availableNow"
        )
    settings = _read(options, read_start(options, FROM_EARLIEST))
    check_batch(settings.start, settings.end)
    for name in _ONLY_STREAMS:
        if name in options:
            warnings.append(f"option {name} has no effect: it is for streaming reads")
    return settings, warnings


def stream_settings(options: Options) -> tuple[SourceSettings, list[str]]:
    """The settings of a streaming read, and warnings about options without effect."""
    warnings = options.warnings(SOURCE)
    for name in _ONLY_BATCHES:
        if name in options:
            raise ConfigError(f"option {name} cannot be used: a stream has no end")
    if "shareGroup" in options:
        for name, why in _NOT_SHARED.items():
            if name in options:
                raise ConfigError(f"option {name} cannot be used with shareGroup: {why}")
    return _read(options, read_start(options, FROM_LATEST)), warnings


def _read(options: Options, start: Bound) -> SourceSettings:
    isolation = options.one_of(
        "kafka.isolation.level", ("read_uncommitted", "read_committed"), "read_uncommitted"
    )
    return SourceSettings(
        client=read_client_settings(options),
        fetch=FetchSettings(
            isolation=IsolationLevel[isolation.upper()],
            partition_bytes=options.integer(
                "kafka.max.partition.fetch.bytes", 4 << 20, low=1, high=1 << 30
            ),
            max_wait_ms=options.integer("kafka.fetch.max.wait.ms", 500, high=MAX_INT32),
            check_crcs=options.flag("kafka.check.crcs", default=True),
            rack=options.text("kafka.client.rack"),
        ),
        subscription=read_subscription(options),
        start=start,
        end=read_end(options),
        fail_on_data_loss=options.flag("failOnDataLoss", default=True),
        with_headers=options.flag("includeHeaders", default=False),
        min_partitions=options.integer("minPartitions", 0, low=1),
        max_records_per_partition=options.integer("maxRecordsPerPartition", 0, low=1),
        limits=_limits(options),
        group_id=options.required("groupId") if "groupId" in options else None,
        share_group=options.required("shareGroup") if "shareGroup" in options else None,
        value=read_value(options),
    )


def read_value(options: Options) -> ValueSettings | None:
    """How values are decoded. JSON and CSV are left to Spark's own functions, which are faster."""
    if "valueFormat" not in options:
        for name in ("valueSchema", "valueSubject", REGISTRY):
            if name in options:
                raise ConfigError(f"option {name} needs option valueFormat")
        return None
    name = options.text("valueFormat").lower()
    if name in CONFLUENT:
        return ValueSettings(name, options.required("valueSchema"), options.required(REGISTRY))
    if name != "avro":
        raise ConfigError(
            f"option valueFormat: {name!r} is not one of avro, {', '.join(CONFLUENT)}; for JSON "
            "and CSV use Spark's from_json and from_csv, as in "
            "from_json(col('value').cast('string'), 'id int')"
        )
    for other in ("valueSubject", REGISTRY):
        if other in options:
            raise ConfigError(f"option {other} is for the formats {', '.join(CONFLUENT)}")
    return ValueSettings(name, options.required("valueSchema"))


def subject_of(options: Options) -> str | None:
    """The subject whose versions define the columns; None: no registry is needed."""
    if options.text("valueFormat").lower() not in CONFLUENT or "valueSchema" in options:
        return None
    if "valueSubject" in options:
        return options.required("valueSubject")
    topics = options.text("subscribe").split(",")
    if len(topics) != 1 or not topics[0].strip():
        raise ConfigError("option valueSubject is needed unless one topic is subscribed to")
    return f"{topics[0].strip()}-value"


def _limits(options: Options) -> TriggerLimits:
    at_most = options.integer("maxOffsetsPerTrigger", 0, low=1) or None
    at_least = options.integer("minOffsetsPerTrigger", 0, low=1) or None
    if at_most is not None and at_least is not None and at_least > at_most:
        raise ConfigError(
            f"option minOffsetsPerTrigger: {at_least} is above maxOffsetsPerTrigger, {at_most}"
        )
    delay = options.text("maxTriggerDelay", "15m").lower()
    match = _TIME.fullmatch(delay)
    if match is None:
        raise ConfigError(f"option maxTriggerDelay: {delay!r} is not a time like 90s, 15m or 1h")
    return TriggerLimits(at_most, at_least, int(int(match[1]) * _TIME_MS[match[2] or "ms"]))
