"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs, ListConfigResources."""

from typing import Any

from differential.case import Case, Eventually, case
from differential.requests import ONE, topic
from differential.rules import Rule, by, own
from penstock.wire.messages import alter_configs, incremental_alter_configs
from penstock.wire.messages.alter_configs import AlterConfigsRequest
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def _describe(
    kind: int = TOPIC,
    name: str = "~t",
    *keys: str,
    every: bool = False,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsRequest:
    wanted = DescribeConfigsResource(
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if every else list(keys),
    )
    return DescribeConfigsRequest(
        resources=[wanted], include_synonyms=synonyms, include_documentation=documentation
    )


CHANGED = (topic(retention_ms="1000", cleanup_policy="compact", segment_bytes="1048576"),)

COMPARED_BROKER_SETTINGS = (
    "log.retention.ms", "log.retention.hours", "log.segment.bytes", "message.max.bytes",
    "num.partitions", "default.replication.factor", "auto.create.topics.enable",
    "compression.type", "log.cleanup.policy", "min.insync.replicas", "num.network.threads",
    "num.io.threads", "socket.request.max.bytes", "log.roll.hours", "log.flush.interval.messages",
    "delete.topic.enable", "unclean.leader.election.enable", "log.message.timestamp.type",
    "log.cleaner.threads", "max.connections", "connections.max.idle.ms", "queued.max.requests",
    "fetch.max.bytes", "max.incremental.fetch.session.cache.slots", "replica.lag.time.max.ms",
    "offsets.retention.minutes", "group.max.session.timeout.ms", "transactional.id.expiration.ms",
)  # fmt: skip

THREADS = {
    "background.threads": (4, 5, 20, 21),
    "log.cleaner.threads": (0, 2, 3),
    "num.io.threads": (3, 17),
    "num.network.threads": (1, 7),
    "num.recovery.threads.per.data.dir": (1, 5),
    "num.replica.fetchers": (0, 3),
}
"""A running broker may only halve or double these."""

DESCRIBE = [
    case("a topic", _describe(every=True), topics=ONE),
    case("a topic with synonyms", _describe(every=True, synonyms=True), topics=ONE),
    case("a topic with documentation", _describe(every=True, documentation=True), topics=ONE,
         since=3),
    case("a topic with settings of its own", _describe(every=True, synonyms=True),
         topics=CHANGED),
    case("chosen settings", _describe(TOPIC, "~t", "retention.ms", "segment.bytes"), topics=ONE),
    case("no settings", _describe(TOPIC, "~t"), topics=ONE),
    case("an unknown setting", _describe(TOPIC, "~t", "no.such", "retention.ms"), topics=ONE),
    case("an unknown topic", _describe(TOPIC, "~none", every=True)),
    case("an empty topic name", _describe(TOPIC, "", every=True)),
    case("a topic name with a blank", _describe(TOPIC, "a b", every=True)),
    case("the broker, chosen settings", _describe(BROKER, "0", *COMPARED_BROKER_SETTINGS)),
    case("the broker, chosen settings with synonyms",
         _describe(BROKER, "0", *COMPARED_BROKER_SETTINGS, synonyms=True)),
    case("the broker, documented",
         _describe(BROKER, "0", *COMPARED_BROKER_SETTINGS, documentation=True), since=3),
    case("all brokers", _describe(BROKER, "", every=True)),
    case("a broker that is not there", _describe(BROKER, "7", every=True)),
    case("a broker of no number", _describe(BROKER, "zero", every=True)),
    case("a broker of a negative number", _describe(BROKER, "-1", every=True)),
    case("resource type 0", _describe(0, "x", every=True)),
    case("resource type 3", _describe(3, "x", every=True)),
    case("resource type 99", _describe(99, "x", every=True)),
    case("client metrics of no name", _describe(CLIENT_METRICS, "", every=True)),
    case("nothing", DescribeConfigsRequest()),
    case("the same topic twice",
         DescribeConfigsRequest(resources=[
             DescribeConfigsResource(resource_type=TOPIC, resource_name="~t",
                                     configuration_keys=["retention.ms"])] * 2), topics=ONE),
    case("topics good and unknown",
         DescribeConfigsRequest(resources=[
             DescribeConfigsResource(resource_type=TOPIC, resource_name=name,
                                     configuration_keys=["retention.ms"])
             for name in ("~t", "~none")]), topics=ONE),
]  # fmt: skip


def _change(
    *changes: tuple[str, int, str | None],
    kind: int = TOPIC,
    name: str = "~t",
    validate_only: bool = False,
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in changes
                ],
            )
        ],
        validate_only=validate_only,
    )


def _reads(key: str, value: str, kind: int = TOPIC, name: str = "~t") -> Eventually:
    def wanted(answer: Any) -> bool:
        return any(config.value == value for config in answer.results[0].configs)

    return Eventually(_describe(kind, name, key), wanted)


AFTER = _describe(every=True, synonyms=True)

INCREMENTAL = [
    case("set", _change(("retention.ms", SET, "77")), _reads("retention.ms", "77"), AFTER,
         topics=ONE, api=IncrementalAlterConfigsRequest),
    case("set, only validated", _change(("retention.ms", SET, "77"), validate_only=True), AFTER,
         topics=ONE, api=IncrementalAlterConfigsRequest),
    case("set two", _change(("retention.ms", SET, "77"), ("segment.bytes", SET, "1048576")),
         topics=ONE),
    case("delete", _change(("retention.ms", DELETE, None)),
         _reads("retention.ms", "604800000"), AFTER, topics=CHANGED,
         api=IncrementalAlterConfigsRequest),
    case("delete what is not set", _change(("retention.ms", DELETE, None)), topics=ONE),
    case("append", _change(("cleanup.policy", APPEND, "delete")),
         _reads("cleanup.policy", "compact,delete"), AFTER, topics=CHANGED,
         api=IncrementalAlterConfigsRequest),
    case("append what is there", _change(("cleanup.policy", APPEND, "compact")), AFTER,
         topics=CHANGED, api=IncrementalAlterConfigsRequest),
    case("append to a default", _change(("cleanup.policy", APPEND, "compact")),
         _reads("cleanup.policy", "delete,compact"), AFTER, topics=ONE,
         api=IncrementalAlterConfigsRequest),
    case("subtract", _change(("cleanup.policy", SUBTRACT, "delete")),
         _reads("cleanup.policy", "compact"), AFTER,
         topics=(topic(cleanup_policy="compact,delete"),), api=IncrementalAlterConfigsRequest),
    case("subtract what is not there", _change(("cleanup.policy", SUBTRACT, "delete")), AFTER,
         topics=CHANGED, api=IncrementalAlterConfigsRequest),
    case("subtract the last", _change(("cleanup.policy", SUBTRACT, "compact")), topics=CHANGED),
    case("append to a number", _change(("retention.ms", APPEND, "5")), topics=ONE),
    case("subtract from a number", _change(("retention.ms", SUBTRACT, "5")), topics=ONE),
    case("set null", _change(("retention.ms", SET, None)), topics=ONE),
    case("append null", _change(("cleanup.policy", APPEND, None)), topics=ONE),
    case("delete with a value", _change(("retention.ms", DELETE, "9")), topics=CHANGED),
    case("set empty", _change(("retention.ms", SET, "")), topics=ONE),
    case("set an unknown setting", _change(("no.such", SET, "1")), topics=ONE),
    case("delete an unknown setting", _change(("no.such", DELETE, None)), topics=ONE),
    case("an empty setting name", _change(("", SET, "1")), topics=ONE),
    case("a wrong value", _change(("retention.ms", SET, "soon")), topics=ONE),
    case("a value out of range", _change(("retention.ms", SET, "-2")), topics=ONE),
    case("one good, one wrong", _change(("segment.bytes", SET, "1048576"),
                                        ("retention.ms", SET, "soon")), AFTER, topics=ONE,
         api=IncrementalAlterConfigsRequest),
    case("the same setting twice", _change(("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
         topics=ONE),
    case("no changes", _change(), topics=ONE),
    case("an unknown topic", _change(("retention.ms", SET, "1"), name="~none")),
    case("an empty topic name", _change(("retention.ms", SET, "1"), name="")),
    case("a topic name with a blank", _change(("retention.ms", SET, "1"), name="a b")),
    case("resource type 0", _change(("retention.ms", SET, "1"), kind=0)),
    case("resource type 99", _change(("retention.ms", SET, "1"), kind=99)),
    case("a broker that is not there", _change(("log.cleaner.threads", SET, "2"), kind=BROKER,
                                               name="9"), ),
    case("a broker of no number", _change(("log.cleaner.threads", SET, "2"), kind=BROKER,
                                          name="zero")),
    case("a broker's setting that needs a restart",
         _change(("socket.request.max.bytes", SET, "1000000"), kind=BROKER, name="0")),
    case("a broker's unknown setting, only validated",
         _change(("no.such", SET, "2"), kind=BROKER, name="0", validate_only=True)),
    case("a broker's setting, only validated",
         _change(("log.cleaner.threads", SET, "2"), kind=BROKER, name="0", validate_only=True)),
    case("a broker's wrong value, only validated",
         _change(("log.cleaner.threads", SET, "many"), kind=BROKER, name="0",
                 validate_only=True)),
    *(
        case(f"{name} of {whose} to {count}, only validated",
             _change((name, SET, str(count)), kind=BROKER, name=broker, validate_only=True))
        for name, counts in THREADS.items() for count in counts
        for whose, broker in (("a broker", "0"), ("all brokers", ""))
    ),
    case("a broker's threads, in steps",
         _change(("num.io.threads", SET, "16"), kind=BROKER, name="0"),
         _reads("num.io.threads", "16", BROKER, "0"),
         _change(("num.io.threads", SET, "33"), kind=BROKER, name="0"),
         _change(("num.io.threads", SET, "32"), kind=BROKER, name="0"),
         _reads("num.io.threads", "32", BROKER, "0"),
         _change(("num.io.threads", DELETE, None), kind=BROKER, name="0"),
         _change(("num.io.threads", SET, "16"), kind=BROKER, name="0"),
         _reads("num.io.threads", "16", BROKER, "0"),
         _change(("num.io.threads", DELETE, None), kind=BROKER, name="0"),
         _reads("num.io.threads", "8", BROKER, "0"),
         api=IncrementalAlterConfigsRequest),
    case("a broker's setting set and deleted",
         _change(("log.cleaner.backoff.ms", SET, "12345"), kind=BROKER, name="0"),
         _reads("log.cleaner.backoff.ms", "12345", BROKER, "0"),
         _describe(BROKER, "0", "log.cleaner.backoff.ms", synonyms=True),
         _change(("log.cleaner.backoff.ms", DELETE, None), kind=BROKER, name="0"),
         _reads("log.cleaner.backoff.ms", "15000", BROKER, "0"),
         _describe(BROKER, "0", "log.cleaner.backoff.ms", synonyms=True),
         api=IncrementalAlterConfigsRequest),
    case("a default of all brokers set and deleted",
         _change(("log.cleaner.backoff.ms", SET, "23456"), kind=BROKER, name=""),
         _reads("log.cleaner.backoff.ms", "23456", BROKER, "0"),
         _describe(BROKER, "0", "log.cleaner.backoff.ms", synonyms=True),
         _describe(BROKER, "", "log.cleaner.backoff.ms", synonyms=True),
         _change(("log.cleaner.backoff.ms", DELETE, None), kind=BROKER, name=""),
         _reads("log.cleaner.backoff.ms", "15000", BROKER, "0"),
         api=IncrementalAlterConfigsRequest),
    case("nothing", IncrementalAlterConfigsRequest()),
    case("the same topic twice",
         IncrementalAlterConfigsRequest(resources=[
             incremental_alter_configs.AlterConfigsResource(
                 resource_type=TOPIC, resource_name="~t", configs=[
                     incremental_alter_configs.AlterableConfig(name="retention.ms", value="1")])
         ] * 2), topics=ONE),
]  # fmt: skip


def _replace(
    *settings: tuple[str, str | None],
    kind: int = TOPIC,
    name: str = "~t",
    validate_only: bool = False,
) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    alter_configs.AlterableConfig(name=key, value=value) for key, value in settings
                ],
            )
        ],
        validate_only=validate_only,
    )


REPLACE = [
    case("set, which deletes the others", _replace(("retention.ms", "88")),
         _reads("retention.ms", "88"), AFTER, topics=CHANGED, api=AlterConfigsRequest),
    case("nothing, which deletes all", _replace(), _reads("retention.ms", "604800000"), AFTER,
         topics=CHANGED, api=AlterConfigsRequest),
    case("only validated", _replace(("retention.ms", "88"), validate_only=True), AFTER,
         topics=CHANGED, api=AlterConfigsRequest),
    case("a wrong value", _replace(("retention.ms", "soon")), topics=ONE),
    case("null", _replace(("retention.ms", None)), topics=ONE),
    case("an unknown setting", _replace(("no.such", "1")), topics=ONE),
    case("an unknown topic", _replace(("retention.ms", "1"), name="~none")),
    case("an empty topic name", _replace(("retention.ms", "1"), name="")),
    case("the same setting twice", _replace(("retention.ms", "1"), ("retention.ms", "2")),
         topics=ONE),
    case("resource type 0", _replace(("retention.ms", "1"), kind=0)),
    case("resource type 99", _replace(("retention.ms", "1"), kind=99)),
    case("a broker that is not there", _replace(("log.cleaner.threads", "2"), kind=BROKER,
                                                name="9")),
    case("a broker's setting that needs a restart",
         _replace(("socket.request.max.bytes", "1000000"), kind=BROKER, name="0")),
    case("no resources", AlterConfigsRequest()),
]  # fmt: skip

BY_TYPE: dict[str, dict[str, Rule]] = {
    "ListConfigResourcesResponse": {"config_resources": by("resource_type", "resource_name")}
}
OWN: dict[str, dict[str, Rule]] = {
    "ListConfigResourcesResponse": {"config_resources": own("resource_name")}
}


def _resources(*kinds: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest(resource_types=list(kinds))


RESOURCES = [
    case("client metrics, as version 0 asks", _resources(), until=0, rules=BY_TYPE),
    case("of every type", _resources(), topics=ONE, since=1, rules=OWN),
    case("topics", _resources(TOPIC), topics=(topic(), topic("~u")), since=1, rules=OWN),
    case("brokers", _resources(BROKER), since=1, rules=BY_TYPE),
    case("brokers' loggers", _resources(BROKER_LOGGER), since=1, rules=BY_TYPE),
    case("client metrics", _resources(CLIENT_METRICS), since=1, rules=BY_TYPE),
    case("the same type twice", _resources(BROKER, BROKER), since=1, rules=BY_TYPE),
    case("two types", _resources(BROKER, CLIENT_METRICS), since=1, rules=BY_TYPE),
    case("type 0", _resources(0), since=1, rules=BY_TYPE),
    case("type 99", _resources(99), since=1, rules=BY_TYPE),
    case("a good type and type 99", _resources(BROKER, 99), since=1, rules=BY_TYPE),
]

SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
OF_GROUP = (SESSION, INTERVAL, "consumer.assignment.interval.ms")
"""Kafka has more types: those of share and streams groups."""


def _of_group(*changes: tuple[str, int, str | None], **more: Any) -> IncrementalAlterConfigsRequest:
    return _change(*changes, kind=GROUP, **{"name": "~g", **more})


DESCRIBE_GROUPS = [
    case("a group that nobody knows", _describe(GROUP, "~g", *OF_GROUP, synonyms=True)),
    case("a group without a name", _describe(GROUP, "", *OF_GROUP)),
    case("a group's unknown setting", _describe(GROUP, "~g", "no.such")),
]

ALTER_GROUPS = [
    case("a group's setting set and deleted",
         _of_group((SESSION, SET, "50000")),
         _reads(SESSION, "50000", GROUP, "~g"),
         _describe(GROUP, "~g", *OF_GROUP, synonyms=True),
         _of_group((SESSION, DELETE, None)),
         _reads(SESSION, "45000", GROUP, "~g"),
         _describe(GROUP, "~g", *OF_GROUP, synonyms=True),
         api=IncrementalAlterConfigsRequest),
    case("a group's setting below the broker's limit", _of_group((SESSION, SET, "44999"))),
    case("a group's setting above the broker's limit", _of_group((INTERVAL, SET, "15001"))),
    case("a group's setting of no number", _of_group((SESSION, SET, "long"))),
    case("a group's setting of null", _of_group((SESSION, SET, None))),
    case("a group's setting appended to", _of_group((SESSION, APPEND, "1"))),
    case("a group's setting deleted that is not set", _of_group((SESSION, DELETE, None))),
    case("a group's setting, only validated",
         _of_group((SESSION, SET, "50000"), validate_only=True),
         _describe(GROUP, "~g", *OF_GROUP), api=IncrementalAlterConfigsRequest),
    case("a group's unknown setting", _of_group(("no.such", SET, "1"))),
    case("a group's least assignment interval",
         _of_group(("consumer.assignment.interval.ms", SET, "0"))),
    case("a group without a name", _of_group((SESSION, SET, "50000"), name="")),
]  # fmt: skip

REPLACE_GROUPS = [
    case("a group's settings, which deletes the others",
         _replace((SESSION, "50000"), kind=GROUP, name="~g"),
         _reads(SESSION, "50000", GROUP, "~g"),
         _replace((INTERVAL, "7000"), kind=GROUP, name="~g"),
         _reads(INTERVAL, "7000", GROUP, "~g"),
         _describe(GROUP, "~g", *OF_GROUP, synonyms=True), api=AlterConfigsRequest),
    case("a group's wrong value", _replace((SESSION, "1"), kind=GROUP, name="~g")),
    case("a group without a name", _replace((SESSION, "50000"), kind=GROUP, name="")),
]  # fmt: skip

GROUP_RESOURCES = [
    case("groups", _of_group((SESSION, SET, "50000")), _reads(SESSION, "50000", GROUP, "~g"),
         _resources(GROUP), since=1, rules=OWN),
    case("groups whose settings were deleted", _of_group((SESSION, SET, "50000")),
         _reads(SESSION, "50000", GROUP, "~g"), _of_group((SESSION, DELETE, None)),
         _reads(SESSION, "45000", GROUP, "~g"), _resources(GROUP), since=1, rules=OWN),
]  # fmt: skip

CASES: list[Case] = [
    *DESCRIBE,
    *DESCRIBE_GROUPS,
    *INCREMENTAL,
    *ALTER_GROUPS,
    *REPLACE,
    *REPLACE_GROUPS,
    *RESOURCES,
    *GROUP_RESOURCES,
]
