"""Elections in pieces: what earlier pieces did is told when a later one fails."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.broker.handlers.elect_leaders import elected
from penstock.broker.handling.turns import PARTITIONS_A_TURN
from penstock.controller.epoch import NotController
from penstock.controller.requested_elections import ElectionType
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition

WANTED = [TopicPartition("t", index) for index in range(3 * PARTITIONS_A_TURN + 1)]


class MovedController:
    """Is no controller any more after some calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    async def elect_leaders(
        self, _: ElectionType, some: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        self.left -= 1
        if self.left < 0:
            raise NotController("another broker is")
        return dict.fromkeys(some)


async def outcomes(controller: Any) -> dict[TopicPartition, ErrorCode]:
    return {
        each: ErrorCode.NONE if error is None else error.code
        async for each, error in elected(ElectionType.PREFERRED, WANTED, controller)
    }


def test_what_was_elected_is_told_when_the_controller_moves() -> None:
    controller = MovedController(1)
    found = asyncio.run(outcomes(controller))
    assert list(found) == WANTED
    codes = list(found.values())
    assert set(codes[:PARTITIONS_A_TURN]) == {ErrorCode.NONE}
    assert set(codes[PARTITIONS_A_TURN:]) == {ErrorCode.NOT_CONTROLLER}
    assert controller.left == -1  # it is not asked again


def test_an_election_that_never_began_is_refused_as_a_whole() -> None:
    with pytest.raises(NotController):
        asyncio.run(outcomes(MovedController(0)))
