"""Partitions new to a share group get their state, as far as time allows."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.context import Context
from penstock.broker.handlers import share_group_heartbeat as heartbeats
from penstock.broker.translate import share_groups
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.group.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from penstock.coordinator.group.share.member import StateTopic
from penstock.coordinator.result import EmptyReply
from penstock.types import TopicIdPartition, Uuid

TOPIC = Uuid(b"t" * 16)
BEAT = ShareHeartbeat(member_id="a", epoch=3)


def topic(*partitions: int) -> dict[Uuid, StateTopic]:
    return {TOPIC: StateTopic("orders", frozenset(partitions))}


class Stage:
    """A group whose state can be written, except that calls for `hanging` partitions hang."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hanging: frozenset[int]) -> None:
        self.noted: list[list[int]] = []
        self.replies: list[ShareHeartbeatReply] = []
        self.epochs: list[int] = []

        async def ask(call: Any) -> EmptyReply:
            if call.key.partition in hanging:
                await asyncio.Event().wait()
            return EmptyReply()

        async def replied(made: Callable[[], Any], _: Context) -> Any:
            return made()

        persister = SimpleNamespace(
            call_with_retries=ask, has_coordinator=lambda key: key.partition not in hanging
        )
        groups = SimpleNamespace(
            share_with_state=lambda _, topics: (
                lambda: self.noted.append(sorted(topics[TOPIC].partitions))
            ),
            share_heartbeat=lambda _, beat: lambda: self.beat(beat),
        )
        self.ctx = cast(
            "Context",
            SimpleNamespace(
                services=SimpleNamespace(
                    coordination=SimpleNamespace(groups=groups),
                    share=SimpleNamespace(persister=persister, groups={}),
                    resources=SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 1)),
                )
            ),
        )
        monkeypatch.setattr(share_groups, "NOTED_AT_A_TIME", 2)
        monkeypatch.setattr(share_groups, "replied", replied)
        monkeypatch.setattr(heartbeats, "replied", replied)
        monkeypatch.setattr(heartbeats, "STATE_S", 0.05)

    def beat(self, beat: ShareHeartbeat) -> ShareHeartbeatReply:
        self.epochs.append(beat.epoch)
        return self.replies.pop(0)

    def heartbeat(self, first: ShareHeartbeatReply) -> ShareHeartbeatReply:
        return asyncio.run(heartbeats.with_state("g", BEAT, first, self.ctx))


def test_initialized_partitions_are_recorded_before_all_have_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group with very many partitions, or with one whose state has no leader, would never get
    any.
    """
    stage = Stage(monkeypatch, frozenset({1, 2}))
    lacks = topic(0, 1, 2, 3, 4)
    stage.replies = [ShareHeartbeatReply("a", 3, 1, None, lacks)] * 2
    stage.heartbeat(ShareHeartbeatReply("a", 3, 1, None, lacks))
    assert stage.noted == [[0, 3], [4]]


def test_an_assignment_in_any_reply_reaches_the_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator sends an assignment once: the member would never receive it again."""
    assigned = frozenset({TopicIdPartition(TOPIC, 0)})
    for hanging in (frozenset[int](), frozenset({1})):
        stage = Stage(monkeypatch, hanging)
        stage.replies = [
            ShareHeartbeatReply("a", 4, 1, assigned, topic(1)),
            ShareHeartbeatReply("a", 5, 1, None, topic(1)),
        ]
        reply = stage.heartbeat(ShareHeartbeatReply("a", 3, 1, None, topic(0, 1)))
        assert (reply.epoch, reply.assignment) == (5, assigned)
        assert stage.epochs == [3, 4]


def test_a_heartbeat_does_not_wait_for_ever_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, frozenset())
    first = ShareHeartbeatReply("a", 3, 1, None, topic(0))

    async def work() -> ShareHeartbeatReply:
        async with share_groups.lock_of("g", stage.ctx):
            return await heartbeats.with_state("g", BEAT, first, stage.ctx)

    assert asyncio.run(work()) == first


def test_failed_partitions_are_returned_and_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, frozenset())
    refused = CoordinatorNotAvailable("")

    async def new_epoch(key: Any, _: Context) -> object:
        return refused if key.partition == 1 else 7

    monkeypatch.setattr(share_groups, "new_epoch", new_epoch)
    failed = asyncio.run(share_groups.initialize("g", topic(0, 1, 2), stage.ctx))
    assert failed == {(TOPIC, 1): refused}
    assert stage.noted == [[0], [2]]
