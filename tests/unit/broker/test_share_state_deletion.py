"""Deletion of share group state: its order, and what remains if it fails."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.context import Context
from penstock.broker.translate import share_groups
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.group.share.member import StateTopic
from penstock.coordinator.result import EmptyReply
from penstock.errors import KafkaError
from penstock.types import Uuid

TOPIC = Uuid(b"t" * 16)
TOPICS = {TOPIC: StateTopic("orders", frozenset({0, 1, 2}))}


def happened(failing: int | None, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    events: list[object] = []

    async def ask(call: Any) -> EmptyReply | KafkaError:
        events.append(call.key.partition)
        return CoordinatorNotAvailable("") if call.key.partition == failing else EmptyReply()

    async def replied(event: object, _: Context) -> None:
        events.append(event)

    groups = SimpleNamespace(
        share_without_topics=lambda _, topics: ("forgotten", list(topics)),
        share_with_state=lambda _, topics: ("kept", topics),
    )
    ctx = SimpleNamespace(
        services=SimpleNamespace(
            coordination=SimpleNamespace(groups=groups),
            share=SimpleNamespace(persister=SimpleNamespace(call_with_retries=ask)),
        )
    )
    monkeypatch.setattr(share_groups, "replied", replied)
    refused = asyncio.run(share_groups.delete_state("g", TOPICS, cast("Context", ctx)))
    assert (refused is None) == (failing is None)
    return events


def test_the_group_forgets_partitions_before_their_state_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Members that join meanwhile would be assigned partitions without state, for ever."""
    assert happened(None, monkeypatch) == [("forgotten", [TOPIC]), 0, 1, 2]


def test_a_failed_deletion_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {TOPIC: StateTopic("orders", frozenset({1, 2}))}
    assert happened(1, monkeypatch) == [("forgotten", [TOPIC]), 0, 1, ("kept", kept)]
