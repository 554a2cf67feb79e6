"""Our settings compared with Kafka's declarations, and our property parser with Java's."""

import json
from functools import cache
from random import Random
from typing import NamedTuple

import pytest

from peers import java
from penstock.config.broker import broker_settings
from penstock.config.consumer_group import ConsumerGroupConfig
from penstock.config.properties import properties
from penstock.config.setting import Setting, parse, settings
from penstock.config.streams_group import StreamsGroupConfig
from penstock.config.topic import TopicConfig
from penstock.config.value import render
from penstock.errors import ConfigError

pytestmark = pytest.mark.peer

NEWEST = "kafka-4.3.1"
LAST_WITH_ZOOKEEPER = "kafka-3.9.2"

INTENDED = {
    "process.roles": "optional: only KRaft needs it",
    "controller.listener.names": "optional: only KRaft needs it",
    "metric.reporters": "there is no JMX",
    "group.streams.initial.rebalance.delay.ms": "0.1 s: 3 s would be the longest part of a start",
    "zookeeper.session.timeout.ms": "6 s, as Kafka had it for most of ZooKeeper's time",
}
"""Settings whose default differs from Kafka's, and why."""

OURS_ONLY = {"replica.lag.max.messages"}
"""Settings older than Kafka 3.9."""

DYNAMIC_ONLY = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
"""Kafka accepts these only at run time; it does not declare them for server.properties."""

OF_AUTHORIZERS = {"super.users", "allow.everyone.if.no.acl.found"}
"""Kafka's authorizers read these themselves; the broker does not declare them."""

INTERNAL = {
    "log.initial.task.delay.ms",
    "producer.id.expiration.check.interval.ms",
    "unclean.leader.election.interval.ms",
    "group.consumer.regex.refresh.interval.ms",
    "share.coordinator.state.topic.prune.interval.ms",
}
"""Internal settings, which Kafka hides from its documentation and the oracle leaves out."""

ALTERED = {
    f"ssl.{store}.{part}"
    for store in ("keystore", "truststore")
    for part in ("type", "location", "password")
} | {"ssl.key.password"}
NOT_ALTERED = ("ssl.", "sasl.")
"""A running Kafka accepts new keys and logins, and stores them encrypted. A running Penstock
accepts file names, and passwords as variables that a config provider replaces.
"""

NOT_OFFERED = (
    "alter.config.policy.kraft.",
    "authorizer.",
    "broker.heartbeat.",
    "broker.session.",
    "config.providers",
    "connections.max.reauth.",
    "controller.quorum.",
    "delegation.",
    "early.start.",
    "eligible.",
    "follower.fetch.last.tiered.",
    "group.coordinator.new.",
    "group.share.",
    "initial.broker.",
    "log.dir.failure.",
    "metadata.",
    "password.encoder.",
    "principal.builder.",
    "remote.",
    "sasl.",
    "security.providers",
    "share.",
    "ssl.",
    "zookeeper.ssl.",
)
"""KRaft, tiered storage, share groups; and security, which has its own settings."""


class Declared(NamedTuple):
    broker: dict[str, tuple[str, str | None]]
    topic: dict[str, tuple[str, str | None]]
    group: dict[str, tuple[str, str | None]]
    updates: dict[str, str]
    synonyms: dict[str, list[tuple[str, int]]]


@cache
def declared(jars: str) -> Declared:
    found = json.loads(java.run("Settings", "declared", jars=jars))
    return Declared(
        {name: (kind, text) for name, (kind, text) in found["broker"].items()},
        {name: (kind, text) for name, (kind, text) in found["topic"].items()},
        {name: (kind, text) for name, (kind, text) in found["group"].items()},
        found["updates"],
        {
            name: [(each, int(unit)) for each, unit in row]
            for name, row in found["synonyms"].items()
        },
    )


OF_KAFKA_4_4 = ("errors.deadletterqueue.", "group.streams.assignors", "streams.assignor.name")
"""Dead letters of share groups (KIP-1191), assignors of streams groups (KIP-1357)."""


def shown(setting: Setting) -> tuple[str, str | None]:
    return setting.kind.name, render(setting.default)


def kafkas_topic_settings() -> list[Setting]:
    """Our topic settings without those of delay topics, which are our own, and those of
    Kafka 4.4.
    """
    return [
        each
        for each in settings(TopicConfig).values()
        if not each.name.startswith(("penstock.", *OF_KAFKA_4_4))
    ]


@pytest.mark.row("A150")
def test_every_topic_setting_has_kafkas_name_type_and_default() -> None:
    ours = {each.name: shown(each) for each in kafkas_topic_settings()}
    assert ours == declared(NEWEST).topic


def test_every_group_setting_has_kafkas_name_type_and_default() -> None:
    """Except for the initial rebalance delay of streams groups, which is shorter."""
    known = {**settings(ConsumerGroupConfig), **settings(StreamsGroupConfig)}
    kafka = declared(NEWEST).group
    prefixes = ("consumer.", "streams.")
    theirs = {name: kafka[name] for name in kafka if name.startswith(prefixes)}
    differing = {
        name
        for name in theirs.keys() | known.keys()
        if name not in theirs or name not in known or shown(known[name]) != theirs[name]
        if not name.startswith(OF_KAFKA_4_4)
    }
    assert differing == {"streams.initial.rebalance.delay.ms"}


@pytest.mark.row("A147")
def test_every_topic_setting_takes_its_default_from_kafkas_broker_settings() -> None:
    ours = {
        name: [(synonym.name, synonym.factor) for synonym in each.synonyms]
        for name, each in settings(TopicConfig).items()
        if each.synonyms
    }
    assert ours == declared(NEWEST).synonyms


@pytest.mark.row("A150")
def test_every_broker_setting_has_kafkas_type_and_default() -> None:
    kafka = {**declared(LAST_WITH_ZOOKEEPER).broker, **declared(NEWEST).broker}
    ours = {name: shown(each) for name, each in broker_settings().items()}
    differing = {name for name in ours if name in kafka and ours[name] != kafka[name]}
    assert differing == set(INTENDED)


def test_every_broker_setting_of_kafka_is_offered_except_the_listed_ones() -> None:
    kafka = {*declared(LAST_WITH_ZOOKEEPER).broker, *declared(NEWEST).broker}
    missing = {name for name in kafka - set(broker_settings()) if not name.startswith(NOT_OFFERED)}
    assert missing == set()


def test_every_broker_setting_is_kafkas_or_our_own() -> None:
    kafka = {*declared(LAST_WITH_ZOOKEEPER).broker, *declared(NEWEST).broker}
    invented = {
        name
        for name in set(broker_settings()) - kafka
        if not name.startswith(("penstock.", *OF_KAFKA_4_4))
    }
    assert invented == OURS_ONLY | DYNAMIC_ONLY | INTERNAL | OF_AUTHORIZERS


def test_the_settings_that_kafka_alters_at_run_time_can_be_altered() -> None:
    for name, each in broker_settings().items():
        if name.startswith(OF_KAFKA_4_4):
            continue
        kafkas = declared(NEWEST).updates.get(name, "read-only")
        if name.startswith(NOT_ALTERED) and name not in ALTERED:
            kafkas = "read-only"
        assert each.update.value == kafkas, name


TEXTS = [
    "",
    "0",
    "1",
    "-1",
    "-2",
    "9",
    "17",
    "22",
    "1048575",
    "1048576",
    "2147483648",
    "1e7",
    "0.5",
]
WORDS = ["true", "False", "yes", "gzip", "GZIP", "compact", "delete,compact", "delete,delete"]
SHAPES = [
    "*",
    "1:2,3:4",
    "*,1:2",
    " 7 ",
    "+8",
    "1_000",
    "0x10",
    "CreateTime",
    "9223372036854775808",
]


def test_topic_settings_accept_and_parse_the_same_texts_as_kafka() -> None:
    pairs = [(each, text) for each in kafkas_topic_settings() for text in [*TEXTS, *WORDS, *SHAPES]]
    asked = "".join(json.dumps([each.name, text]) + "\n" for each, text in pairs)
    answers = java.run("Settings", "topic", jars=NEWEST, stdin=asked).splitlines()
    for (each, text), answer in zip(pairs, answers, strict=True):
        assert meaning(each, text) == json.loads(answer), (each.name, text)


def meaning(setting: Setting, text: str) -> str | None:
    try:
        return render(parse(setting, text))
    except ConfigError:
        return None


FILES = [
    "a=1\nb = 2\nc:3\nd 4\ne\t=\t5\nf  :  6",
    "# comment \\\na=1\n   ! another\nb=2",
    "a=one\\\n   two\\\n  # three\nb=2",
    "a=one\\\n\nb=2",
    "a=x\\\\\nb=y\\",
    "\\\n# no comment?\na=1",
    "a\\ b\\=c\\:d=e\\tf\\u00e9\\z",
    "\r\na=1\r\nb=2\rc=3\f",
    "a==b\n:c\n=d\n  \t\n",
    "a=\\ud83d\\ude00",
    "a=\\u12",
    "a=\\u12x4",
    "a=1\na=2",
    "lonely",
    "log.dirs = /a , /b   ",
]


def scrambled(count: int) -> list[str]:
    """Texts of the characters that are special in the syntax; the same ones every time."""
    dice = Random(4)
    return ["".join(dice.choices(" \t\f\n\r\\\\=:#!uab0", k=24)) for _ in range(count)]


def test_a_properties_file_is_parsed_as_by_java() -> None:
    files = [*FILES, *scrambled(3_000)]
    asked = "".join(json.dumps(text) + "\n" for text in files)
    answers = java.run("Settings", "properties", jars=NEWEST, stdin=asked).splitlines()
    for text, answer in zip(files, answers, strict=True):
        assert read(text) == named(json.loads(answer)), text


def named(pairs: dict[str, str] | None) -> dict[str, str] | None:
    """Leaves out the empty key, which Java makes of a final backslash; it names no setting."""
    return pairs and {key: value for key, value in pairs.items() if key}


def read(text: str) -> dict[str, str] | None:
    try:
        return named({each.key: each.value for each in properties(text)})
    except ConfigError:
        return None
