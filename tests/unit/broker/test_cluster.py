"""Settings of brokers and topics as a broker reads them from the cluster image."""

import pytest

from penstock.broker.cluster import Cluster
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.types import BrokerId

ME = BrokerId(7)


def test_altered_settings_apply_at_once_and_the_most_specific_wins() -> None:
    cluster = Cluster(ME, {"max.connections": "100"}, ClusterImage())
    assert cluster.config.network.max_connections == 100
    cluster.image = cluster.image.apply(ImageDelta(default_broker_config={"max.connections": "50"}))
    assert cluster.config.network.max_connections == 50
    own = ImageDelta(broker_configs={ME: {"max.connections": "7"}})
    cluster.image = cluster.image.apply(own)
    assert cluster.config.network.max_connections == 7
    cluster.image = cluster.image.apply(ImageDelta(broker_configs={ME: None}))
    assert cluster.config.network.max_connections == 50


def test_other_changes_do_not_parse_the_settings_again() -> None:
    cluster = Cluster(ME, {}, ClusterImage())
    before = cluster.config
    cluster.image = cluster.image.apply(ImageDelta(topic_configs={"t": {"retention.ms": "1"}}))
    assert cluster.config is before
    assert cluster.topic_config("t").retention_ms == 1


def test_a_topics_settings_are_parsed_once_per_change() -> None:
    cluster = Cluster(ME, {}, ClusterImage(topic_configs={"t": {"segment.bytes": "2000000"}}))
    before = cluster.topic_config("t")
    assert cluster.topic_config("t") is before
    assert cluster.topic_config("other").segment_bytes > before.segment_bytes == 2_000_000
    cluster.image = cluster.image.apply(
        ImageDelta(topic_configs={"t": {"segment.bytes": "3000000"}})
    )
    assert cluster.topic_config("t").segment_bytes == 3_000_000
    cluster.image = cluster.image.apply(
        ImageDelta(default_broker_config={"log.retention.ms": "1000"})
    )
    after = cluster.topic_config("t")
    assert (after.segment_bytes, after.retention_ms) == (3_000_000, 1000)


def test_unusable_settings_are_left_out_and_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka's tools, or another version, may have written such settings."""
    stored = ImageDelta(
        topic_configs={"t": {"retention.ms": "many", "segment.ms": "5", "no.such": "1"}},
        default_broker_config={"max.connections": "none", "log.retention.ms": "7"},
        group_configs={"g": {"consumer.session.timeout.ms": "long"}},
    )
    cluster = Cluster(ME, {}, ClusterImage().apply(stored))
    for _ in range(2):
        found = cluster.topic_config("t")
        assert (found.retention_ms, found.segment_ms) == (7, 5)
        assert cluster.topic_config("u").retention_ms == 7
    assert cluster.group_config("g") == cluster.group_config("another")
    assert [each.message.partition(" is ")[0] for each in caplog.records] == [
        "a setting of all brokers",
        "a setting of topic t",
    ]


def test_altered_settings_without_effect_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    many = {f"t{each}": {"preallocate": "true"} for each in range(3)}
    stored = ImageDelta(
        topic_configs={**many, "plain": {"preallocate": "false", "segment.ms": "5"}},
        default_broker_config={"num.recovery.threads.per.data.dir": "4"},
    )
    cluster = Cluster(ME, {}, ClusterImage().apply(stored))
    for topic in ("plain", *many, *many):
        cluster.topic_config(topic)
    assert [each.message.partition(", without effect")[0] for each in caplog.records] == [
        "num.recovery.threads.per.data.dir=4 of all brokers: Accepted",
        "preallocate=true of topic t0: Accepted",
    ]


def test_altered_settings_that_contradict_the_static_ones_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The controller checks altered settings against its own static ones, which may differ."""
    least = "log.cleaner.min.compaction.lag.ms"
    image = ClusterImage(default_broker_config={"log.cleaner.max.compaction.lag.ms": "5"})
    cluster = Cluster(ME, {least: "10"}, image)
    assert cluster.config.topic_defaults.min_compaction_lag_ms == 10
    assert "the altered settings of the brokers are ignored: " in caplog.text
    assert cluster.layers.dynamic_default == {}


def test_settings_are_remembered_for_altered_groups_only() -> None:
    """Any client may name groups: they must not fill the memory."""
    altered = {"g": {"share.delivery.count.limit": "7"}}
    cluster = Cluster(ME, {}, ClusterImage(group_configs=altered))
    assert cluster.share_group_config("g").share_delivery_count_limit == 7
    assert cluster.share_group_config("g") is cluster.share_group_config("g")
    for read in (cluster.group_config, cluster.share_group_config):
        assert read("a") is read("b")
    broker = ImageDelta(default_broker_config={"group.share.delivery.count.limit": "3"})
    cluster.image = cluster.image.apply(broker)
    assert cluster.share_group_config("a").share_delivery_count_limit == 3
