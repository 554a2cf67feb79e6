"""Changed settings, compared with an image."""

from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.config_delta import changed_configs
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.types import BrokerId

KNOWN = ClusterImage(
    topic_configs={"t": {"retention.ms": "1"}},
    broker_configs={BrokerId(1): {"log.cleaner.threads": "2"}},
    default_broker_config={"log.cleaner.threads": "1"},
    group_configs={"g": {"consumer.session.timeout.ms": "5000"}},
    client_configs={ClientEntity("alice"): {"SCRAM-SHA-256": "x"}},
)
BROKERS = {"1": {"log.cleaner.threads": "2"}, "<default>": {"log.cleaner.threads": "1"}}
GROUPS = {"g": {"consumer.session.timeout.ms": "5000"}}
CLIENTS = {ClientEntity("alice"): {"SCRAM-SHA-256": "x"}}


def test_known_settings_are_not_a_change() -> None:
    assert (
        changed_configs(KNOWN, {"t": {"retention.ms": "1"}}, BROKERS, GROUPS, CLIENTS, {}) is None
    )


def test_the_delta_has_only_changed_settings() -> None:
    topics = {"t": {"retention.ms": "1"}, "u": {"retention.ms": "2"}}
    brokers = {**BROKERS, "2": {"log.cleaner.threads": "3"}, "<default>": {}}
    metrics = {"s": {"metrics": "*"}}
    delta = changed_configs(KNOWN, topics, brokers, {}, {ClientEntity("bob"): {}}, metrics)
    assert delta == ImageDelta(
        topic_configs={"u": {"retention.ms": "2"}},
        broker_configs={BrokerId(2): {"log.cleaner.threads": "3"}},
        group_configs={"g": None},
        client_configs={ClientEntity("alice"): None, ClientEntity("bob"): {}},
        client_metrics=metrics,
        default_broker_config={},
    )
