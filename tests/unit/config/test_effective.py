"""DescribeConfigs: a setting's value, its source and its synonyms, as Kafka returns them."""

from penstock.config.effective import (
    SHOWN_IF_SET,
    BrokerLayers,
    EffectiveConfig,
    EffectiveSource,
    broker_default_entries,
    broker_entries,
    effective_topic_config,
    topic_entries,
)
from penstock.config.setting import settings
from penstock.config.topic import TopicConfig

LAYERS = BrokerLayers(
    static={"log.retention.hours": "48", "log.segment.bytes": " 2000000 "},
    dynamic_default={"log.retention.ms": "2000"},
    dynamic={"log.retention.ms": "3000", "my.plugin": "secret"},
)


def topic_entry(name: str, overrides: dict[str, str], layers: BrokerLayers) -> EffectiveConfig:
    return next(each for each in topic_entries(overrides, layers) if each.name == name)


def broker_entry(name: str, layers: BrokerLayers) -> EffectiveConfig:
    return next(each for each in broker_entries(layers) if each.name == name)


def test_the_layer_with_precedence_gives_the_value() -> None:
    nearer = [{}, {"retention.ms": "4000"}]
    assert [effective_topic_config(each, LAYERS).retention_ms for each in nearer] == [3000, 4000]
    assert effective_topic_config({}, BrokerLayers(LAYERS.static)).retention_ms == 48 * 3_600_000
    assert effective_topic_config({}, BrokerLayers()) == TopicConfig()


def test_synonyms_are_listed_layer_by_layer() -> None:
    entry = topic_entry("retention.ms", {"retention.ms": "4000"}, LAYERS)
    assert (entry.value, entry.source) == ("4000", EffectiveSource.TOPIC)
    assert entry.synonyms == (
        ("retention.ms", "4000", EffectiveSource.TOPIC),
        ("log.retention.ms", "3000", EffectiveSource.DYNAMIC_BROKER),
        ("log.retention.ms", "2000", EffectiveSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "48", EffectiveSource.STATIC_BROKER),
        ("log.retention.hours", "168", EffectiveSource.DEFAULT),
    )


def test_as_in_kafka_synonyms_start_with_the_settings_own_name() -> None:
    entry = topic_entry("retention.ms", {}, BrokerLayers(LAYERS.static))
    assert (entry.value, entry.source, entry.synonyms) == (
        str(48 * 3_600_000),
        EffectiveSource.DEFAULT,
        (),
    )


def test_values_are_rendered_as_kafka_prints_them() -> None:
    entry = topic_entry("segment.bytes", {}, LAYERS)
    assert (entry.value, entry.source) == ("2000000", EffectiveSource.STATIC_BROKER)
    assert topic_entry("min.cleanable.dirty.ratio", {}, LAYERS).value == "0.5"


def test_every_topic_setting_is_listed() -> None:
    own = {"penstock.delay.to": "orders"}
    kafkas = [name for name in settings(TopicConfig) if not name.startswith(SHOWN_IF_SET)]
    assert [each.name for each in topic_entries({}, LAYERS)] == kafkas
    assert [each.name for each in topic_entries(own, LAYERS)] == [*kafkas, *own]


def test_a_broker_lists_its_settings_and_hides_unknown_ones() -> None:
    assert broker_entry("log.retention.ms", LAYERS).value == "3000"
    assert broker_entry("log.retention.minutes", LAYERS)[1:4] == (None, EffectiveSource.DEFAULT, ())
    unknown = broker_entry("my.plugin", LAYERS)
    assert (unknown.value, unknown.source, unknown.setting) == (
        None,
        EffectiveSource.DYNAMIC_BROKER,
        None,
    )


def test_the_default_broker_lists_what_was_altered_for_all() -> None:
    (entry,) = broker_default_entries(LAYERS)
    assert entry[:3] == ("log.retention.ms", "2000", EffectiveSource.DYNAMIC_DEFAULT_BROKER)
