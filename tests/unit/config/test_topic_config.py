"""Settings of a topic: Kafka's defaults, and values that are accepted or rejected."""

import pytest

from penstock.config.setting import attribute, settings
from penstock.config.topic import TopicConfig, topic_config
from penstock.errors import ConfigError


def test_the_defaults_are_those_of_kafka() -> None:
    config = TopicConfig()
    assert config.segment_bytes == 1_073_741_824
    assert config.retention_ms == 604_800_000
    assert config.max_message_bytes == 1_048_588
    assert config.cleanup_policy == ("delete",)


def test_every_attribute_is_its_wire_name_with_underscores() -> None:
    for name, each in settings(TopicConfig).items():
        assert getattr(TopicConfig(), attribute(name)) == each.default


def test_a_topic_overrides_the_brokers_default() -> None:
    broker = TopicConfig(segment_bytes=2 << 20, retention_ms=1000)
    config = topic_config({"retention.ms": "-1"}, broker)
    assert (config.segment_bytes, config.retention_ms) == (2 << 20, -1)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cleanup.policy", "", ()),
        ("cleanup.policy", "delete,delete", ("delete",)),
        ("cleanup.policy", " delete , compact ", ("delete", "compact")),
        ("retention.bytes", "-7", -7),
        ("segment.bytes", " +2097152 ", 2_097_152),
        ("preallocate", "TRUE", True),
        ("compression.gzip.level", "-1", -1),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("leader.replication.throttled.replicas", "1:2,3:4", ("1:2", "3:4")),
        ("leader.replication.throttled.replicas", "", ()),
        ("local.retention.ms", "99999999999999", 99_999_999_999_999),
    ],
)
def test_a_value_that_kafka_accepts_is_accepted(name: str, text: str, value: object) -> None:
    assert getattr(topic_config({name: text}), attribute(name)) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", "none"),
        ("cleanup.policy", "delete,,compact"),
        ("retention.ms", "-2"),
        ("segment.bytes", "1024"),
        ("segment.bytes", "1e7"),
        ("segment.bytes", "9999999999"),
        ("segment.ms", "0"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("preallocate", "yes"),
        ("preallocate", ""),
        ("compression.type", "GZIP"),
        ("compression.gzip.level", "0"),
        ("message.timestamp.type", "createtime"),
        ("leader.replication.throttled.replicas", "*,1:2"),
        ("leader.replication.throttled.replicas", "none"),
        ("flush.ms", "0x10"),
        ("nope", "1"),
    ],
)
def test_a_value_that_kafka_rejects_is_rejected_by_name(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        topic_config({name: text})


def test_compaction_may_not_be_due_before_it_is_allowed() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms \(10\)"):
        topic_config({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


def test_tiered_storage_is_rejected_rather_than_ignored() -> None:
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled"):
        topic_config({"remote.storage.enable": "true"})
