"""The options of the sink: those of Spark's `kafka` format, and what Penstock adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.errors import ConfigError
from penstock.record.compression import Codec
from penstock.spark.client.settings import CLIENT, ClientSettings, read_client_settings
from penstock.spark.options import SUPPORTED, NoEffect, Options, Unsupported, Use
from penstock.spark.sink.columns import SinkColumns, sink_columns
from penstock.spark.sink.epoch import transactional_id

BATCH_BYTES: Final = 512 * 1024
BUFFER_BYTES: Final = 32 * 1024 * 1024
TRANSACTION_TIMEOUT_MS: Final = 300_000

_FULL_BATCHES: Final = NoEffect("full batches are sent at once, the rest when the task ends")
_NO_CLASSES: Final = Unsupported("there is no Java class to load; write key, value and partition")

PRODUCER: Final[dict[str, Use]] = {
    "acks": SUPPORTED,
    "batch.size": SUPPORTED,
    "buffer.memory": SUPPORTED,
    "compression.type": SUPPORTED,
    "compression.gzip.level": SUPPORTED,
    "compression.lz4.level": SUPPORTED,
    "compression.zstd.level": SUPPORTED,
    "delivery.timeout.ms": SUPPORTED,
    "enable.idempotence": SUPPORTED,
    "linger.ms": _FULL_BATCHES,
    "max.block.ms": NoEffect("kafka.default.api.timeout.ms limits every wait"),
    "max.in.flight.requests.per.connection": NoEffect(
        "at most five requests are in flight per broker"
    ),
    "max.request.size": NoEffect("kafka.batch.size and the topic's max.message.bytes decide"),
    "retries": NoEffect("kafka.delivery.timeout.ms limits the retries"),
    "transaction.timeout.ms": SUPPORTED,
    "transactional.id": Unsupported(
        "write option transactional=true, and transactionalId if needed"
    ),
    "partitioner.class": _NO_CLASSES,
    "partitioner.adaptive.partitioning.enable": NoEffect("rows without key take turns by batch"),
    "partitioner.availability.timeout.ms": NoEffect("rows without key take turns by batch"),
    "partitioner.ignore.keys": Unsupported("leave the column key out, or write a column partition"),
    "key.serializer": Unsupported("keys are written as they are: string or binary"),
    "value.serializer": Unsupported("values are written as they are: string or binary"),
}

SINK: Final[dict[str, Use]] = {
    "topic": SUPPORTED,
    "transactional": SUPPORTED,
    "transactionalId": SUPPORTED,
    "ifMarkerIsMissing": SUPPORTED,
    "ifRowsDiffer": SUPPORTED,
    "orderBy": SUPPORTED,
    "includeTimestamp": SUPPORTED,
    "valueFormat": SUPPORTED,
    "valueSchema": SUPPORTED,
    "valueSubject": SUPPORTED,
    "schema.registry.url": SUPPORTED,
    "includeHeaders": NoEffect("headers are written if the rows have a column headers"),
    "checkpointLocation": SUPPORTED,
    "queryName": SUPPORTED,
    "path": Unsupported(
        "a topic has no path; set option topic, and call start() or save() without a path"
    ),
    **{f"kafka.{name}": use for name, use in (CLIENT | PRODUCER).items()},
}

CONFLUENT: Final = ("confluent-avro", "confluent-protobuf", "confluent-json")


@dataclass(frozen=True, slots=True)
class SinkValue:
    """The format of values, and where the id of their schema comes from."""

    format: str
    registry: str
    subject: str
    schema: str
    """The schema to register; empty: the latest version of the subject is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """All settings of a task of the sink. A plain value, which Spark sends to executors."""

    client: ClientSettings
    topic: str | None
    columns: SinkColumns
    value: SinkValue | None = None
    """How values are encoded; None: they are bytes already."""
    acks: int = -1
    idempotent: bool = True
    codec: Codec = Codec.NONE
    level: int | None = None
    batch_bytes: int = BATCH_BYTES
    buffer_bytes: int = BUFFER_BYTES
    delivery_timeout_ms: int = 120_000
    fails_without_marker: bool = True
    fails_on_other_rows: bool = True
    transactional_id: str | None = None
    """None if the sink is not transactional."""
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS


def read_sink_settings(
    given: Mapping[str, str], types: Mapping[str, str], *, streaming: bool
) -> tuple[SinkSettings, list[str]]:
    """The settings, and warnings about options without effect.

    `types` are the simple types of the rows' columns by name.
    """
    options = Options(given)
    warnings = options.warnings(SINK)
    transactional = options.flag("transactional", default=False)
    if transactional and not streaming:
        raise ConfigError(
            "option transactional is for streams; a failed batch can be written again as a whole"
        )
    acks = _ACKS[options.one_of("kafka.acks", _ACKS, "all")]
    idempotent = options.flag("kafka.enable.idempotence", default=acks == -1)
    if idempotent and acks != -1:
        raise ConfigError("option kafka.enable.idempotence needs kafka.acks all")
    if transactional and not idempotent:
        raise ConfigError("option transactional needs kafka.acks all and kafka.enable.idempotence")
    codec = Codec[options.one_of("kafka.compression.type", _CODECS, "none").upper()]
    settings = SinkSettings(
        client=read_client_settings(options),
        topic=options.optional("topic"),
        columns=sink_columns(
            types,
            topic=options.optional("topic"),
            with_timestamps=options.flag("includeTimestamp", default=False),
            order_by=_order_by(options, transactional=transactional),
            encodes_value="valueFormat" in options,
        ),
        value=_value(options),
        acks=acks,
        idempotent=idempotent,
        codec=codec,
        level=_level(options, codec),
        batch_bytes=options.integer("kafka.batch.size", BATCH_BYTES, low=1),
        buffer_bytes=options.integer("kafka.buffer.memory", BUFFER_BYTES, low=1),
        delivery_timeout_ms=options.integer("kafka.delivery.timeout.ms", 120_000, low=1),
        fails_without_marker=options.one_of("ifMarkerIsMissing", ("fail", "write"), "fail")
        == "fail",
        fails_on_other_rows=options.one_of("ifRowsDiffer", ("fail", "skip"), "fail") == "fail",
        transactional_id=_transactional_id(options) if transactional else None,
        transaction_timeout_ms=options.integer(
            "kafka.transaction.timeout.ms", TRANSACTION_TIMEOUT_MS, low=1
        ),
    )
    return settings, warnings


_ACKS: Final = {"all": -1, "-1": -1, "1": 1}
_CODECS: Final = tuple(codec.name.lower() for codec in Codec)
_LEVELS: Final = {Codec.GZIP: (-1, 9), Codec.LZ4: (1, 17), Codec.ZSTD: (-(1 << 17), 22)}
"""The lowest and the highest level of Kafka's clients."""


def _level(options: Options, codec: Codec) -> int | None:
    name = f"kafka.compression.{codec.name.lower()}.level"
    if name not in options:
        return None
    low, high = _LEVELS[codec]
    level = options.integer(name, -1, low=low, high=high)
    return None if codec is Codec.GZIP and level == -1 else level


def _order_by(options: Options, *, transactional: bool) -> tuple[str, ...] | None:
    """Only retries that repeat rows need an order; option orderBy overrides that."""
    if "orderBy" in options:
        return tuple(name.strip() for name in options.text("orderBy").split(",") if name.strip())
    return None if transactional else ()


def _transactional_id(options: Options) -> str:
    found = transactional_id(
        options.optional("transactionalId"), options.optional("checkpointLocation")
    )
    if found is None:
        raise ConfigError(
            "option transactional needs option checkpointLocation of this query, or option "
            "transactionalId with a name that no other query uses"
        )
    return found


def _value(options: Options) -> SinkValue | None:
    if "valueFormat" not in options:
        for name in ("valueSchema", "valueSubject", "schema.registry.url"):
            if name in options:
                raise ConfigError(f"option {name} needs option valueFormat")
        return None
    name = options.one_of("valueFormat", CONFLUENT, "")
    topic = options.text("topic")
    if "valueSubject" not in options and not topic:
        raise ConfigError("option valueSubject is needed where a column names the topic")
    subject = options.text("valueSubject") or f"{topic}-value"
    registry = options.required("schema.registry.url")
    return SinkValue(name, registry, subject, options.text("valueSchema"))
