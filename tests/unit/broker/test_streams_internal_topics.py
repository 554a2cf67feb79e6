"""Heartbeats of a streams group member whose internal topics were just created."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.context import Context
from penstock.broker.handlers import streams_group_heartbeat as heartbeats
from penstock.coordinator.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from penstock.coordinator.group.streams.topology import (
    GroupStatus,
    StatusCode,
    StreamsInternalTopic,
)

BEAT = StreamsHeartbeat(member_id="a", epoch=0)
FIRST = StreamsHeartbeatReply(
    member_id="a",
    epoch=1,
    missing=(StreamsInternalTopic("app-changelog", 1, 1, {}),),
    statuses=(GroupStatus(StatusCode.MISSING_INTERNAL_TOPICS, "app-changelog"),),
)


def answered(monkeypatch: pytest.MonkeyPatch, *, hears: bool) -> StreamsHeartbeatReply:
    """The reply; this broker learns of the topic after the broker that created it, or never."""
    topics: dict[str, object] = {}

    async def create_internal(*_: object) -> str:
        if hears:
            asyncio.get_running_loop().call_later(0.05, topics.setdefault, "app-changelog", None)
        return ""

    async def replied(reply: object, _: Context) -> Any:
        return reply

    def beat(_group: str, _beat: StreamsHeartbeat) -> StreamsHeartbeatReply:
        return StreamsHeartbeatReply(member_id="a", epoch=2) if topics else FIRST

    monkeypatch.setattr(heartbeats, "create_internal", create_internal)
    monkeypatch.setattr(heartbeats, "replied", replied)
    monkeypatch.setattr(heartbeats, "CREATION_S", 10.0 if hears else 0.05)
    services = SimpleNamespace(
        cluster=SimpleNamespace(image=SimpleNamespace(topics=topics)),
        coordination=SimpleNamespace(groups=SimpleNamespace(streams_heartbeat=beat)),
    )
    ctx = cast("Context", SimpleNamespace(services=services))
    return asyncio.run(heartbeats.with_internal_topics("app", BEAT, FIRST, ctx))


def test_tasks_are_assigned_without_another_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = answered(monkeypatch, hears=True)
    assert (reply.epoch, reply.statuses) == (2, ())


def test_topics_that_never_appear_are_reported_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    (status,) = answered(monkeypatch, hears=False).statuses
    assert status.code is StatusCode.MISSING_INTERNAL_TOPICS
    assert "is not finished" in status.detail
