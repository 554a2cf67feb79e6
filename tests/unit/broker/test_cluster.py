from penstock.broker.cluster import Cluster
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.types import BrokerId

ME = BrokerId(7)


def test_settings_that_are_altered_hold_at_once_and_the_nearest_wins() -> None:
    cluster = Cluster(ME, {"max.connections": "100"}, ClusterImage())
    assert cluster.config.network.max_connections == 100
    cluster.image = cluster.image.apply(ImageDelta(default_broker_config={"max.connections": "50"}))
    assert cluster.config.network.max_connections == 50
    own = ImageDelta(broker_configs={ME: {"max.connections": "7"}})
    cluster.image = cluster.image.apply(own)
    assert cluster.config.network.max_connections == 7
    cluster.image = cluster.image.apply(ImageDelta(broker_configs={ME: None}))
    assert cluster.config.network.max_connections == 50


def test_a_change_of_anything_else_costs_no_new_reading_of_the_settings() -> None:
    cluster = Cluster(ME, {}, ClusterImage())
    before = cluster.config
    cluster.image = cluster.image.apply(ImageDelta(topic_configs={"t": {"retention.ms": "1"}}))
    assert cluster.config is before
    assert cluster.topic_config("t").retention_ms == 1
