"""Which settings a resource takes, and which resources there are."""

import pytest

from penstock.config.effective import BrokerLayers
from penstock.controller.configs import (
    BrokerResource,
    ClientMetricsResource,
    ClientResource,
    ConfigResource,
    GroupResource,
    TopicResource,
    checked,
    current,
)
from penstock.controller.topic_rules import UnknownTopic
from penstock.controller.topics import InvalidConfig
from penstock.errors import InvalidRequest, KafkaError
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import ClusterImage
from penstock.types import BrokerId

LAYERS = BrokerLayers({}, {}, {})
THIS, ALL = BrokerResource(BrokerId(0)), BrokerResource(None)
GROUP, METRICS = GroupResource("g"), ClientMetricsResource("m")


@pytest.mark.parametrize(
    ("resource", "error", "says"),
    [
        (TopicResource(""), InvalidRequest, "Default topic"),
        (GroupResource(""), InvalidRequest, "Default group"),
        (ClientMetricsResource(""), InvalidRequest, "can't be empty"),
        (TopicResource("missing"), UnknownTopic, "'missing' does not exist"),
    ],
)
def test_a_resource_without_a_name_or_topic_is_refused(
    resource: ConfigResource, error: type[KafkaError], says: str
) -> None:
    with pytest.raises(error, match=says):
        current(resource, ClusterImage())


@pytest.mark.parametrize(
    "resource", [THIS, ALL, GROUP, METRICS, ClientResource(ClientEntity(user="ada"))], ids=str
)
def test_a_resource_without_settings_has_none_yet(resource: ConfigResource) -> None:
    assert current(resource, ClusterImage()) == {}


VALID = [
    (GROUP, {"consumer.session.timeout.ms": "46000"}),
    (GROUP, {"share.auto.offset.reset": "earliest"}),
    (GROUP, {"streams.num.standby.replicas": "1"}),
    (METRICS, {"match": "client_id=a.*", "interval.ms": "1000"}),
    (THIS, {"log.cleaner.threads": "2"}),
    (ALL, {"log.cleaner.threads": "2"}),
    (ClientResource(ClientEntity(user="ada")), {"producer_byte_rate": "1"}),
]


@pytest.mark.parametrize(("resource", "given"), VALID, ids=str)
def test_valid_settings_are_taken_as_they_are(
    resource: ConfigResource, given: dict[str, str]
) -> None:
    assert checked(resource, given, LAYERS) == given


@pytest.mark.parametrize(
    ("resource", "name", "value", "error", "says"),
    [
        (GROUP, "consumer.session.timeout.ms", "1", InvalidConfig, "consumer.session.timeout.ms"),
        (GROUP, "share.auto.offset.reset", "soon", InvalidConfig, "share.auto.offset.reset"),
        (GROUP, "streams.num.standby.replicas", "x", InvalidConfig, "streams.num.standby"),
        (GROUP, "colour", "blue", InvalidConfig, "colour"),
        (METRICS, "match", "client_id=(", InvalidRequest, "Illegal client matching pattern"),
        (METRICS, "interval.ms", "x", InvalidRequest, "interval.ms"),
        (THIS, "broker.id", "1", InvalidRequest, r"dynamically: \[broker.id\]"),
        (THIS, "ssl.keystore.location", "a", InvalidRequest, "only per-listener"),
        (ALL, "listeners", "PLAINTEXT://:1", InvalidRequest, "its own listeners"),
    ],
)
def test_unusable_settings_are_refused_by_name(
    resource: ConfigResource, name: str, value: str, error: type[KafkaError], says: str
) -> None:
    with pytest.raises(error, match=says):
        checked(resource, {name: value}, LAYERS)
