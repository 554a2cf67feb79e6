"""`group.coordinator.rebalance.protocols`: which group protocols a broker serves."""

import pytest

from penstock.config.group import GroupConfig
from penstock.errors import ConfigError, ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from support.brokers.wire_link import WireLink

SETTING = "group.coordinator.rebalance.protocols"


@pytest.mark.parametrize(
    ("protocols", "heartbeat", "description"),
    [
        ("classic", ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION),
        ("classic,consumer", ErrorCode.NONE, ErrorCode.NONE),
    ],
)
def test_the_consumer_protocol_can_be_disabled(
    protocols: str, heartbeat: ErrorCode, description: ErrorCode
) -> None:
    join = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    settings = {SETTING: protocols, "offsets.topic.num.partitions": "1"}
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        find_coordinator(link)
        reported = link.ask(join)
        assert isinstance(reported, ConsumerGroupHeartbeatResponse)
        assert reported.error_code == heartbeat
        described = link.ask(ConsumerGroupDescribeRequest(["g"]))
        assert isinstance(described, ConsumerGroupDescribeResponse)
        assert [each.error_code for each in described.groups] == [description]


@pytest.mark.parametrize(
    ("protocols", "code"),
    [
        ("classic,consumer", ErrorCode.UNSUPPORTED_VERSION),
        ("classic,consumer,streams", ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_the_streams_protocol_can_be_disabled(protocols: str, code: ErrorCode) -> None:
    settings = {SETTING: protocols, "offsets.topic.num.partitions": "1"}
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        find_coordinator(link)
        described = link.ask(StreamsGroupDescribeRequest(["g"]))
        assert isinstance(described, StreamsGroupDescribeResponse)
        assert [each.error_code for each in described.groups] == [code]


def find_coordinator(link: WireLink) -> None:
    """Looking for a coordinator creates the offsets topic."""
    found = link.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    assert isinstance(found, FindCoordinatorResponse)


def test_the_classic_protocol_cannot_be_disabled() -> None:
    with pytest.raises(ConfigError, match=SETTING):
        GroupConfig(group_coordinator_rebalance_protocols=("consumer",))
