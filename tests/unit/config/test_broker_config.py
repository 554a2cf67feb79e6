"""Settings of a broker: defaults, synonyms, listeners, and conflicts between settings."""

import pytest

from penstock.config.broker import SECTIONS, BrokerConfig, broker_config, broker_settings
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.config.profile import PROFILES
from penstock.config.setting import attribute, settings
from penstock.errors import ConfigError

PLAINTEXT, SSL = SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL


def test_no_texts_give_the_defaults() -> None:
    assert broker_config({}) == BrokerConfig()


def test_every_attribute_is_its_wire_name_with_underscores() -> None:
    for section in SECTIONS:
        for name, each in settings(section).items():
            assert getattr(section(), attribute(name)) == each.default


def test_no_setting_is_declared_in_two_sections() -> None:
    names = [name for section in SECTIONS for name in settings(section)]
    assert len(names) == len(set(names))


@pytest.mark.row("A101")
@pytest.mark.parametrize(
    ("texts", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_retention_follows_the_finest_unit_given(texts: dict[str, str], retention_ms: int) -> None:
    assert broker_config(texts).topic_defaults.retention_ms == retention_ms


def test_contradicting_topic_defaults_are_rejected() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms"):
        broker_config(
            {
                "log.cleaner.min.compaction.lag.ms": "10",
                "log.cleaner.max.compaction.lag.ms": "5",
            }
        )


@pytest.mark.row("A145")
def test_listeners_split_an_internal_from_an_external_network() -> None:
    listener = broker_config(
        {
            "listeners": "INTERNAL://10.0.0.1:9092,external://[::1]:9093,CONTROLLER://:9094",
            "advertised.listeners": "INTERNAL://a:9092,EXTERNAL://b.example:19093",
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:SSL",
            "inter.broker.listener.name": "INTERNAL",
            "controller.listener.names": "CONTROLLER",
        }
    ).listener
    assert listener.endpoints() == (
        Endpoint("INTERNAL", PLAINTEXT, "10.0.0.1", 9092),
        Endpoint("EXTERNAL", SSL, "::1", 9093),
    )
    assert listener.advertised() == (
        Endpoint("INTERNAL", PLAINTEXT, "a", 9092),
        Endpoint("EXTERNAL", SSL, "b.example", 19093),
    )
    assert listener.inter_broker() == "INTERNAL"


def test_brokers_connect_over_the_listener_with_their_protocol() -> None:
    texts = {"listeners": "LAN://:9092", "listener.security.protocol.map": "LAN:PLAINTEXT"}
    assert broker_config(texts).listener.inter_broker() == "LAN"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"listeners": ""}, "names no address"),
        ({"listeners": "localhost:9092"}, "must be name://host:port"),
        ({"listeners": "PLAINTEXT://:99999"}, "must be name://host:port"),
        ({"listeners": "LAN://:9092"}, "LAN is not in listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "has PLAINTEXT twice"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "has :1 twice"),
        ({"listeners": "PLAINTEXT://0.0.0.0:1"}, "nobody can connect to 0.0.0.0"),
        ({"advertised.listeners": "SSL://a:1"}, "SSL is not in listeners"),
        ({"inter.broker.listener.name": "LAN"}, "LAN is not in advertised.listeners"),
        ({"listener.security.protocol.map": "A:HTTP"}, "must be listener:protocol"),
        ({"broker.id": "1", "node.id": "2"}, "node.id (2) is not broker.id (1)"),
        ({"log.dirs": ""}, "log.dirs names no directory"),
        ({"replica.fetch.wait.max.ms": "40000"}, "replica.fetch.wait.max.ms (40000) is greater"),
        ({"group.consumer.session.timeout.ms": "1"}, "group.consumer.session.timeout.ms (1)"),
        ({"group.consumer.heartbeat.interval.ms": "20000"}, "(5000 to 15000)"),
        ({"zookeeper.metadata.migration.enable": "true"}, "no KRaft"),
        ({"max.connections.per.ip.overrides": "10.0.0.1"}, "must be a comma-separated list of"),
        ({"max.connections.per.ip.overrides": "localhost:5"}, "without host names"),
    ],
)
def test_conflicting_settings_are_rejected(texts: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        broker_config(texts)
    assert message in str(refused.value)


def test_a_kraft_file_sets_the_broker_id_too() -> None:
    assert broker_config({"node.id": "3"}).identity.number == 3
    assert broker_config({}).identity.number is None


def test_log_dirs_overrides_log_dir() -> None:
    identity = broker_config({"log.dir": "/a", "log.dirs": "/b, /c"}).identity
    assert identity.directories == ("/b", "/c")


def test_single_addresses_may_have_their_own_limits() -> None:
    given = {"max.connections.per.ip.overrides": "10.0.0.1:5, 0:0:0:0:0:0:0:1:7"}
    network = broker_config(given).network
    assert network.connections_by_ip == {"10.0.0.1": 5, "::1": 7}


@pytest.mark.parametrize("texts", PROFILES.values(), ids=PROFILES)
def test_every_profile_holds_settings_that_parse(texts: dict[str, str]) -> None:
    assert set(texts) <= set(broker_settings())
    assert broker_config(texts) != BrokerConfig()
