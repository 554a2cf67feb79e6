"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs, ListConfigResources over a socket."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages import alter_configs as replacing
from penstock.wire.messages import incremental_alter_configs as altering
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from penstock.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from support.brokers.wire_link import WireLink

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND = 0, 1, 2


@pytest.fixture
def link() -> Iterator[WireLink]:
    settings = {"broker.id": "0", "log.retention.hours": "48"}
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        new = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        link.ask(CreateTopicsRequest(topics=[new]))
        yield link


def describe(
    link: WireLink, kind: int, name: str, *keys: str
) -> dict[str, DescribeConfigsResourceResult]:
    asked = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys)
    )
    response = link.ask(
        DescribeConfigsRequest(resources=[asked], include_synonyms=True, include_documentation=True)
    )
    assert isinstance(response, DescribeConfigsResponse)
    (result,) = response.results
    assert result.error_code == 0, result.error_message
    return {each.name: each for each in result.configs}


def alter(link: WireLink, kind: int, name: str, *changes: tuple[str, int, str | None]) -> int:
    configs = [
        altering.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = altering.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    response = link.ask(altering.IncrementalAlterConfigsRequest(resources=[resource]))
    assert isinstance(response, altering.IncrementalAlterConfigsResponse)
    (result,) = response.responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert (result.error_message is None) == (result.error_code == 0)
    return result.error_code


def synonyms(result: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(each.name, each.value, each.source) for each in result.synonyms]


def test_a_topics_setting_is_described_with_all_its_synonyms(link: WireLink) -> None:
    assert alter(link, BROKER, "", ("log.retention.ms", SET, "2000")) == 0
    assert alter(link, BROKER, "0", ("log.retention.ms", SET, "3000")) == 0
    assert alter(link, TOPIC, "t", ("retention.ms", SET, "4000")) == 0
    reported = describe(link, TOPIC, "t")["retention.ms"]
    assert (reported.value, reported.config_source, reported.config_type) == ("4000", 1, 5)
    assert synonyms(reported) == [
        ("retention.ms", "4000", 1),
        ("log.retention.ms", "3000", 2),
        ("log.retention.ms", "2000", 3),
        ("log.retention.hours", "48", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert reported.documentation
    assert not reported.read_only


def test_only_requested_settings_are_described(link: WireLink) -> None:
    assert set(describe(link, TOPIC, "t", "retention.ms", "colour")) == {"retention.ms"}


def test_a_broker_describes_which_settings_need_a_restart(link: WireLink) -> None:
    reported = describe(link, BROKER, "0")
    assert (
        reported["log.retention.hours"].value,
        reported["log.retention.hours"].config_source,
    ) == (
        "48",
        4,
    )
    assert reported["log.retention.hours"].read_only
    assert not reported["log.retention.ms"].read_only


def test_the_default_broker_describes_only_altered_settings(link: WireLink) -> None:
    assert describe(link, BROKER, "") == {}
    alter(link, BROKER, "", ("log.cleaner.threads", SET, "2"), ("my.plugin", SET, "secret"))
    reported = describe(link, BROKER, "")
    assert (
        reported["log.cleaner.threads"].value,
        reported["log.cleaner.threads"].config_source,
    ) == (
        "2",
        3,
    )
    assert (reported["my.plugin"].value, reported["my.plugin"].is_sensitive) == (None, True)


REFUSED: list[tuple[int, str, tuple[str, int, str | None], ErrorCode]] = [
    (TOPIC, "t", ("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
    (TOPIC, "t", ("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
    (TOPIC, "t", ("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
    (TOPIC, "u", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (BROKER, "7", ("log.cleaner.threads", SET, "2"), ErrorCode.INVALID_REQUEST),
    (BROKER, "abc", ("log.cleaner.threads", SET, "2"), ErrorCode.INVALID_REQUEST),
    (LOGGER, "7", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
    (LOGGER, "0", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
    (LOGGER, "0", ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
    (LOGGER, "0", ("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
    (LOGGER, "0", ("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
    (99, "0", ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
]


def test_invalid_alterations_are_refused_with_the_reason(link: WireLink) -> None:
    for kind, name, change, code in REFUSED:
        assert alter(link, kind, name, change) == code, change


def test_a_loggers_level_changes_while_the_broker_runs(link: WireLink) -> None:
    logger = logging.getLogger("penstock.broker.net.session")
    before = logger.level
    try:
        assert alter(link, LOGGER, "0", (logger.name, SET, "TRACE")) == 0
        reported = describe(link, LOGGER, "0", logger.name)[logger.name]
        assert (reported.value, reported.config_source) == ("TRACE", 6)
        assert logger.isEnabledFor(logging.DEBUG)
        assert alter(link, LOGGER, "0", (logger.name, DELETE, None)) == 0
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(before)


def test_replacing_resets_unnamed_settings(link: WireLink) -> None:
    alter(link, TOPIC, "t", ("retention.ms", SET, "4000"))
    resource = replacing.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=[replacing.AlterableConfig(name="flush.ms", value="9")],
    )
    response = link.ask(replacing.AlterConfigsRequest(resources=[resource]))
    assert isinstance(response, replacing.AlterConfigsResponse)
    assert response.responses[0].error_code == 0
    reported = describe(link, TOPIC, "t", "retention.ms", "flush.ms")
    assert {name: each.config_source for name, each in reported.items()} == {
        "retention.ms": 5,
        "flush.ms": 1,
    }


def test_a_request_may_alter_a_resource_only_once(link: WireLink) -> None:
    resource = replacing.AlterConfigsResource(resource_type=TOPIC, resource_name="t")
    response = link.ask(replacing.AlterConfigsRequest(resources=[resource, resource]))
    assert isinstance(response, replacing.AlterConfigsResponse)
    assert [each.error_code for each in response.responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_config_resources_are_listed_by_kind(link: WireLink) -> None:
    def listed(*kinds: int, version: int = 1) -> list[tuple[int, str]]:
        response = link.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
        assert isinstance(response, ListConfigResourcesResponse)
        assert response.error_code == (ErrorCode.UNSUPPORTED_VERSION if 99 in kinds else 0)
        return [(each.resource_type, each.resource_name) for each in response.config_resources]

    assert listed() == [(LOGGER, "0"), (BROKER, "0"), (TOPIC, "t")]
    assert listed(TOPIC) == [(TOPIC, "t")]
    assert listed(99) == []
    assert listed(version=0) == []


SESSION = "consumer.session.timeout.ms"


def groups(link: WireLink) -> list[str]:
    listed = link.ask(ListConfigResourcesRequest(resource_types=[GROUP]))
    assert isinstance(listed, ListConfigResourcesResponse)
    return [each.resource_name for each in listed.config_resources]


def test_a_groups_setting_is_described_with_the_brokers_default(link: WireLink) -> None:
    assert alter(link, GROUP, "g/1", (SESSION, SET, "50000")) == 0
    reported = describe(link, GROUP, "g/1")[SESSION]
    assert (reported.value, reported.config_source, reported.config_type) == ("50000", 8, 3)
    assert synonyms(reported) == [
        (SESSION, "50000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    assert describe(link, GROUP, "another")[SESSION].value == "45000"
    assert groups(link) == ["g/1"]
    assert alter(link, GROUP, "g/1", (SESSION, DELETE, None)) == 0
    assert groups(link) == []
    assert describe(link, GROUP, "g/1")[SESSION].config_source == 5


def test_a_groups_setting_without_a_broker_setting_has_its_own_default(link: WireLink) -> None:
    name = "share.auto.offset.reset"
    default = (name, "latest", 5)
    assert synonyms(describe(link, GROUP, "g/1")[name]) == [default]
    assert alter(link, GROUP, "g/1", (name, SET, "earliest")) == 0
    assert synonyms(describe(link, GROUP, "g/1")[name]) == [(name, "earliest", 8), default]


def test_a_groups_settings_survive_a_restart(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path) as broker, WireLink(broker.bootstrap) as link:
        assert alter(link, GROUP, "g/ä", (SESSION, SET, "50000")) == 0
        assert alter(link, GROUP, "h", (SESSION, SET, "50001")) == 0
        assert alter(link, GROUP, "h", (SESSION, DELETE, None)) == 0
    with EmbeddedBroker(directory=tmp_path) as broker, WireLink(broker.bootstrap) as link:
        assert describe(link, GROUP, "g/ä")[SESSION].value == "50000"
        assert groups(link) == ["g/ä"]


def test_a_groups_settings_stay_within_the_brokers_limits(link: WireLink) -> None:
    assert alter(link, GROUP, "g", (SESSION, SET, "44999")) == ErrorCode.INVALID_CONFIG
    assert alter(link, GROUP, "g", (SESSION, SET, "60001")) == ErrorCode.INVALID_CONFIG
    assert alter(link, GROUP, "", (SESSION, SET, "50000")) == ErrorCode.INVALID_REQUEST
    assert groups(link) == []


def test_the_interval_of_all_groups_changes_while_the_broker_runs(link: WireLink) -> None:
    of_all, of_one = "group.consumer.assignment.interval.ms", "consumer.assignment.interval.ms"
    assert alter(link, BROKER, "", (of_all, SET, "3000")) == 0
    assert describe(link, GROUP, "g")[of_one].value == "3000"
    assert synonyms(describe(link, GROUP, "g")[of_one]) == [
        (of_all, "3000", 3),
        (of_all, "1000", 5),
    ]


def test_a_default_that_contradicts_a_topic_does_not_prevent_a_start(
    tmp_path: Path,
) -> None:
    """Each change is valid by itself, and Kafka accepts both."""
    lag, most = "min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    with EmbeddedBroker(directory=tmp_path) as broker, WireLink(broker.bootstrap) as link:
        broker.create_topic("t", configs={lag: "1000000"})
        assert alter(link, BROKER, "", (most, SET, "500000")) == 0
    with EmbeddedBroker(directory=tmp_path) as broker, WireLink(broker.bootstrap) as link:
        assert describe(link, TOPIC, "t")[lag].value == "1000000"
        assert describe(link, TOPIC, "t")["max.compaction.lag.ms"].value == "500000"
        assert alter(link, TOPIC, "t", ("retention.ms", SET, "1")) == ErrorCode.INVALID_CONFIG
        assert alter(link, TOPIC, "t", (lag, DELETE, None)) == 0
