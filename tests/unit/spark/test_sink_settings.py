"""The sink's options: those of Spark's kafka format, and Penstock's additions."""

import pytest

from penstock.errors import ConfigError
from penstock.record.compression import Codec, compress, decompress
from penstock.spark.sink.columns import SinkColumns, sink_columns
from penstock.spark.sink.settings import SinkSettings, read_sink_settings

BASE = {"kafka.bootstrap.servers": "b:9092", "topic": "out"}
TYPES = {"key": "binary", "value": "string"}


def settings(given: dict[str, str], *, streaming: bool = True) -> SinkSettings:
    return read_sink_settings(BASE | given, TYPES, streaming=streaming)[0]


def test_the_default_is_acks_all_and_idempotence() -> None:
    found = settings({})
    assert (found.acks, found.idempotent, found.codec) == (-1, True, Codec.NONE)
    assert found.transactional_id is None
    assert found.columns == SinkColumns(value=1, key=0)


def test_option_names_ignore_case() -> None:
    assert settings({"KAFKA.Compression.Type": "ZSTD"}).codec is Codec.ZSTD


def test_acks_one_disables_idempotence() -> None:
    assert not settings({"kafka.acks": "1"}).idempotent


def test_a_compression_level_belongs_to_its_codec() -> None:
    given = {"kafka.compression.type": "zstd", "kafka.compression.zstd.level": "9"}
    assert settings(given | {"kafka.compression.gzip.level": "1"}).level == 9


@pytest.mark.parametrize(
    ("codec", "levels"), [("gzip", (-1, 1, 9)), ("lz4", (1, 17)), ("zstd", (-(1 << 17), 22))]
)
def test_every_level_of_a_codec_compresses(codec: str, levels: tuple[int, ...]) -> None:
    for level in levels:
        given = {"kafka.compression.type": codec, f"kafka.compression.{codec}.level": f"{level}"}
        found = settings(given)
        packed = compress(found.codec, b"a" * 1000, found.level)
        assert bytes(decompress(found.codec, packed, 1000)) == b"a" * 1000


def test_a_transactional_query_is_named_by_its_checkpoint() -> None:
    given = {"transactional": "true", "checkpointLocation": "/c"}
    assert (settings(given).transactional_id or "").startswith("penstock-sink-")
    assert settings(given | {"transactionalId": "mine"}).transactional_id == "mine"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
        ({"kafka.acks": "0"}, "kafka.acks: '0' is not one of all, -1, 1"),
        ({"kafka.acks": "1", "kafka.enable.idempotence": "true"}, "needs kafka.acks all"),
        ({"kafka.acks": "1", "transactional": "true"}, "transactional needs kafka.acks all"),
        ({"transactional": "true"}, "checkpointLocation of this query, or option transactionalId"),
        ({"kafka.compression.type": "brotli"}, "'brotli' is not one of none, gzip"),
        ({"kafka.transactional.id": "x"}, "write option transactional=true"),
        ({"kafka.key.serializer": "x"}, "keys are written as they are"),
        ({"kafka.batch.size": "many"}, "kafka.batch.size: 'many' is not an integer"),
        (
            {"kafka.compression.type": "gzip", "kafka.compression.gzip.level": "10"},
            "kafka.compression.gzip.level: 10 is above 9",
        ),
        (
            {"kafka.compression.type": "lz4", "kafka.compression.lz4.level": "0"},
            "kafka.compression.lz4.level: 0 is below 1",
        ),
        ({"kafka.batch.sise": "1"}, "unknown option kafka.batch.sise; did you mean kafka.batch.s"),
        ({"tpoic": "x"}, "unknown option tpoic; did you mean topic?"),
        ({"path": "/x"}, "a topic has no path"),
        ({"orderBy": "offset"}, "orderBy: the rows have no column offset"),
        ({"includeTimestamp": "true"}, "includeTimestamp: the rows have no column timestamp"),
    ],
)
def test_an_error_names_the_option(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        settings(given)


def test_a_batch_is_not_transactional() -> None:
    with pytest.raises(ConfigError, match="transactional is for streams"):
        settings({"transactional": "true", "transactionalId": "x"}, streaming=False)


@pytest.mark.parametrize("name", ["kafka.linger.ms", "kafka.retries", "includeHeaders"])
def test_options_without_effect_give_a_warning(name: str) -> None:
    _, reported = read_sink_settings(BASE | {name: "1"}, TYPES, streaming=True)
    assert [each.split(":")[0] for each in reported] == [f"option {name} has no effect"]


ROWS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "headers": "array<struct<key:string,value:binary>>",
}


def test_the_rows_of_a_source_are_written_unchanged() -> None:
    found = sink_columns(ROWS, topic=None)
    assert found == SinkColumns(key=0, value=1, topic=2, partition=3, headers=6, order=(3, 4))


def test_option_topic_wins_over_the_column() -> None:
    assert sink_columns(ROWS, topic="out").topic is None


def test_option_include_timestamp_writes_the_column() -> None:
    assert sink_columns(ROWS, topic="out", with_timestamps=True).timestamp == 5


def test_rows_are_sorted_by_source_offset_or_by_option_order_by() -> None:
    assert sink_columns({"value": "string", "offset": "bigint"}, topic="o").order == (1,)
    assert sink_columns({"value": "string"}, topic="o").order == ()
    assert sink_columns(ROWS, topic="o", order_by=("key", "offset")).order == (0, 4)
    assert sink_columns(ROWS, topic="o", order_by=()).order == ()


@pytest.mark.parametrize(
    ("types", "topic", "words"),
    [
        ({"key": "binary"}, "out", "no column value"),
        ({"value": "binary"}, None, "option topic is missing, and the rows have no column topic"),
        ({"value": "int"}, "out", "column value is int: it must be binary or string"),
        ({"value": "string", "key": "bigint"}, "out", "column key is bigint"),
        ({"value": "string", "partition": "bigint"}, "out", "column partition is bigint"),
        ({"value": "string", "headers": "map<string,string>"}, "out", "column headers is map"),
        ({"value": "string", "topic": "binary"}, None, "column topic is binary"),
    ],
)
def test_an_error_names_the_column(types: dict[str, str], topic: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        sink_columns(types, topic=topic)
