"""Replies of a coordinator become a response once all are committed or the time is up."""

from typing import Any

from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.config.group import GroupConfig
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.errors import ErrorCode, KafkaError
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition
from support.groups.group_transcript import GROUP, LoopClock, MemoryLog, coordinator

NO_CONTEXT: Any = None
"""Not used by calls that pass their coordinator and timeout."""

OFFSET = ((TopicPartition("t", 0), CommittedOffset(5)),)


def reported(replies: list[Any]) -> list[Any]:
    return [each.code if isinstance(each, KafkaError) else each for each in replies]


def test_a_response_waits_until_every_reply_is_committed() -> None:
    loop, log = ManualLoop(), MemoryLog()
    groups = coordinator(log, loop, LoopClock(loop), GroupConfig())
    log.commits = False
    pending_replies: list[Any] = [
        groups.commit(GROUP, Committer(), OFFSET),
        groups.fetch(GROUP, ()),
    ]
    response = answered(pending_replies, reported, NO_CONTEXT, 100, groups.runtime)
    assert isinstance(response, Parked)
    assert response.attempt() is None
    log.commit()
    assert response.attempt() == [(None,), {}]


def test_when_time_is_up_an_empty_reply_is_still_a_reply() -> None:
    loop, log = ManualLoop(), MemoryLog()
    groups = coordinator(log, loop, LoopClock(loop), GroupConfig())
    empty = groups.fetch(GROUP, None)
    log.commits = False
    pending_replies: list[Any] = [empty, groups.commit(GROUP, Committer(), OFFSET)]
    response = answered(pending_replies, reported, NO_CONTEXT, 100, groups.runtime)
    assert isinstance(response, Parked)
    assert response.expire() == [{}, ErrorCode.COORDINATOR_NOT_AVAILABLE]
