"""Elections in pieces: results of earlier pieces are returned when a later one fails."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.broker.handlers.elect_leaders import elected
from penstock.broker.handling.turns import PARTITIONS_A_TURN
from penstock.controller.epoch import NotController
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.enums import ElectionType

WANTED = [TopicPartition("t", index) for index in range(3 * PARTITIONS_A_TURN + 1)]


class MovedController:
    """Stops being the controller after some calls."""

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


def test_completed_elections_are_returned_when_the_controller_moves() -> None:
    controller = MovedController(1)
    found = asyncio.run(outcomes(controller))
    assert list(found) == WANTED
    codes = list(found.values())
    assert set(codes[:PARTITIONS_A_TURN]) == {ErrorCode.NONE}
    assert set(codes[PARTITIONS_A_TURN:]) == {ErrorCode.NOT_CONTROLLER}
    assert controller.left == -1  # no further call


def test_a_request_whose_first_election_fails_is_refused_as_a_whole() -> None:
    with pytest.raises(NotController):
        asyncio.run(outcomes(MovedController(0)))
