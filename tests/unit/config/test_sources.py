"""Sources of settings, their precedence, and messages about wrong ones."""

from pathlib import Path

import pytest

from penstock.config.environment import setting_names
from penstock.config.sources import SettingSource, resolve
from penstock.errors import ConfigError


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_source_with_precedence_wins_and_is_remembered(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "server.properties",
        "replica.lag.time.max.ms=20000\nnum.partitions=2\nbroker.id=7\nlog.retention.hours=1",
    )
    resolved = resolve(
        file=file,
        profile="classic",
        environ={"KAFKA_NUM_PARTITIONS": "3", "KAFKA_BROKER_ID": "8"},
        pairs=["broker.id=9"],
    )
    config = resolved.config
    assert config.topic_defaults.max_message_bytes == 1_000_000
    assert config.replication.replica_lag_time_max_ms == 20_000
    assert config.controller.num_partitions == 3
    assert config.identity.number == 9
    names = ["message.max.bytes", "log.retention.hours", "num.partitions", "broker.id", "log.dirs"]
    assert [resolved.source(name) for name in names] == [
        SettingSource.PROFILE,
        SettingSource.FILE,
        SettingSource.ENVIRONMENT,
        SettingSource.COMMAND_LINE,
        SettingSource.DEFAULT,
    ]
    assert resolved.given["log.retention.hours"].origin == "server.properties:4"
    assert resolved.text("log.retention.hours") == "1"
    assert resolved.text("log.retention.ms") is None
    assert resolved.text("num.io.threads") == "8"


def test_an_unknown_name_is_a_warning_with_the_nearest_one(tmp_path: Path) -> None:
    file = written(tmp_path, "server.properties", "\nlog.segment.byte=1")
    resolved = resolve(file=file)
    assert resolved.warnings == (
        "server.properties:2: unknown setting log.segment.byte; did you mean log.segment.bytes?",
    )


def test_a_name_unlike_any_setting_gets_no_suggestion() -> None:
    assert resolve(pairs=["zzz=1"]).warnings == ("--set: unknown setting zzz",)


def test_a_kafka_setting_without_effect_gets_a_warning() -> None:
    (warning,) = resolve(pairs=["controller.quorum.fetch.timeout.ms=1"]).warnings
    assert warning.endswith("controller.quorum.fetch.timeout.ms has no effect: there is no KRaft")


def test_an_unknown_name_is_an_error_in_strict_mode() -> None:
    with pytest.raises(ConfigError, match=r"did you mean log\.segment\.bytes\?"):
        resolve(pairs=["log.segment.byte=1"], strict=True)


def test_a_bad_value_is_rejected_with_file_and_line(tmp_path: Path) -> None:
    file = written(tmp_path, "server.properties", "# x\nnum.partitions = many")
    with pytest.raises(ConfigError, match=r"^server\.properties:2: num\.partitions is 'many'"):
        resolve(file=file)


def test_a_bad_value_is_rejected_even_if_another_source_wins() -> None:
    with pytest.raises(ConfigError, match="KAFKA_NUM_PARTITIONS"):
        resolve(environ={"KAFKA_NUM_PARTITIONS": "x"}, pairs=["num.partitions=1"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("server.properties", "num.partitions=3\r\n"),
        ("server.toml", "num.partitions = 3\r\n"),
        ("server.yaml", "num.partitions: 3\r\n"),
    ],
)
def test_a_byte_order_mark_does_not_belong_to_the_first_name(
    tmp_path: Path, name: str, text: str
) -> None:
    pytest.importorskip("yaml")
    config = resolve(file=written(tmp_path, name, "\ufeff" + text), strict=True).config
    assert config.controller.num_partitions == 3


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        resolve(file=tmp_path / "absent.properties")


def test_a_pair_needs_an_equals_sign() -> None:
    with pytest.raises(ConfigError, match="name=value"):
        resolve(pairs=["num.partitions"])


def test_an_unknown_profile_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="must be one of classic"):
        resolve(profile="modern")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("server.toml", 'listeners = ["A://:1", "B://:2"]\n[log]\nsegment.bytes = 2097152\n'),
        ("server.yaml", "listeners: ['A://:1', 'B://:2']\nlog:\n  segment:\n    bytes: 2097152\n"),
    ],
)
def test_nested_keys_are_joined_by_dots(tmp_path: Path, name: str, text: str) -> None:
    pytest.importorskip("yaml")
    pairs = ["listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"]
    config = resolve(file=written(tmp_path, name, text), pairs=pairs).config
    assert config.listener.listeners == ("A://:1", "B://:2")
    assert config.topic_defaults.segment_bytes == 2_097_152


def test_the_last_value_in_a_properties_file_wins_with_a_warning(tmp_path: Path) -> None:
    text = "num.partitions=2\nlog.dir=x\n# y\nnum.partitions=3\n"
    resolved = resolve(file=written(tmp_path, "server.properties", text), strict=True)
    assert resolved.config.controller.num_partitions == 3
    assert resolved.warnings == (
        "server.properties:4: num.partitions is set again, after line 1; this last value is used",
    )


def test_a_setting_in_two_sources_is_not_a_repetition(tmp_path: Path) -> None:
    file = written(tmp_path, "server.properties", "num.partitions=2\n")
    environ = {"KAFKA_NUM_PARTITIONS": "3"}
    resolved = resolve(file=file, profile="classic", environ=environ, pairs=["num.partitions=4"])
    assert resolved.warnings == ()


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "x.yaml",
            "broker.id: 1\nlog:\n  dirs: a\nbroker.id: 2\n",
            "line 4: broker.id is there twice, first on line 1",
        ),
        (
            "x.yaml",
            "log:\n  dirs: a\n  dirs: b\n",
            "line 3: dirs is there twice, first on line 2",
        ),
        ("x.yaml", "log.dirs: a\nlog:\n  dirs: b\n", "log.dirs is set twice"),
        ("x.toml", '"log.dirs" = "a"\n[log]\ndirs = "b"\n', "log.dirs is set twice"),
        ("x.yaml", "log: &log\n  dirs: *log\n", "line 1: an anchor contains itself"),
        (
            "x.yaml",
            "a: 1\nb: [2\nc: 3\n",
            "line 3: not YAML: while parsing a flow sequence did not find expected ',' or ']'",
        ),
        ("x.yaml", "a: *b\n", "line 1: not YAML: found undefined alias"),
        ("x.yaml", "a: 1\nb: \x01\n", "line 2: not YAML: control characters are not allowed"),
    ],
)
def test_a_contradictory_or_empty_document_is_refused_with_its_line(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    pytest.importorskip("yaml")
    with pytest.raises(ConfigError) as refused:
        resolve(file=written(tmp_path, name, text))
    assert str(refused.value) == f"{name}: {problem}"


@pytest.mark.parametrize(
    ("pair", "reported"),
    [
        ("broker.id=-5", "--set: broker.id is '-5', must be a 32-bit integer of at least -1"),
        ("node.id=-5", "--set: node.id is '-5', must be a 32-bit integer of at least 0"),
    ],
)
def test_an_error_about_a_negative_id_uses_the_name_as_written(pair: str, reported: str) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve(pairs=[pair])
    assert str(refused.value) == reported


@pytest.mark.parametrize(("name", "text"), [("x.toml", "a = = b"), ("x.toml", "a = 1979-05-27")])
def test_a_broken_document_is_rejected_with_its_file_name(
    tmp_path: Path, name: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=r"^x\.toml: "):
        resolve(file=written(tmp_path, name, text))


def test_environment_variables_follow_the_rule_of_kafkas_images() -> None:
    environ = {
        "KAFKA_LOG_SEGMENT_BYTES": "",
        "KAFKA_A__B___C": "",
        "PENSTOCK_HTTP_LISTEN": "",
        "KAFKA_HEAP_OPTS": "",
        "KAFKA_JMX_PORT": "",
        "KAFKA_LOG4J_OPTS": "",
        "KAFKA_PORT_9092_TCP_ADDR": "",
        "KAFKA_SERVICE_HOST": "",
        "PENSTOCK_PORT": "",
        "PENSTOCK_SERVICE_HOST": "",
        "SCALA_VERSION": "",
        "PATH": "",
    }
    assert dict(setting_names(environ)) == {
        "KAFKA_LOG_SEGMENT_BYTES": "log.segment.bytes",
        "KAFKA_A__B___C": "a_b-c",
        "PENSTOCK_HTTP_LISTEN": "penstock.http.listen",
    }


def test_a_name_with_capitals_is_found_from_the_environment() -> None:
    resolved = resolve(environ={"KAFKA_ZOOKEEPER_CLIENTCNXNSOCKET": "x"}, strict=True)
    assert resolved.text("zookeeper.clientCnxnSocket") == "x"
