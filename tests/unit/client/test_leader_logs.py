"""The epochs of a leader's log, requested one after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.client.cluster import Client
from penstock.client.leader_logs import MOST_EPOCHS, LeaderLog, leader_logs
from penstock.log.epochs import EpochStart, LeaderEpochs
from penstock.types import TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

LATER = TopicPartition("later", 0)


def asked(
    starts: list[tuple[int, int]], end: int, since: int, epoch: int, begin: int = 0
) -> LeaderLog | None:
    """The answer of a leader in `epoch` whose log [begin, end) has the epochs `starts`."""
    epochs = LeaderEpochs(EpochStart(*each) for each in starts)

    async def call(
        request: OffsetForLeaderEpochRequest | ListOffsetsRequest, *_: object, **__: object
    ) -> Any:
        if isinstance(request, ListOffsetsRequest):
            listed = ListOffsetsPartitionResponse(partition_index=0, offset=begin)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse("later", [listed])])
        (part,) = request.topics[0].partitions
        assert part.current_leader_epoch == epoch
        found, at = epochs.end_offset_for(part.leader_epoch, end)
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    "later", [EpochEndOffset(partition=0, leader_epoch=found, end_offset=at)]
                )
            ]
        )

    async def topic(_: str) -> Any:
        return SimpleNamespace(partitions={0: SimpleNamespace(leader_epoch=epoch)})

    async def connection(_: object) -> Any:
        return SimpleNamespace(call=call)

    async def by_leader(partitions: dict[TopicPartition, int]) -> Any:
        return {1: list(partitions)}

    async def retrying(attempt: Callable[[], Awaitable[Any]], **_: object) -> Any:
        return await attempt()

    client = SimpleNamespace(
        topic=topic,
        connection=connection,
        by_leader=by_leader,
        retrying=retrying,
        request_timeout_ms=1000,
    )
    return asyncio.run(leader_logs(cast("Client", client), {LATER: since})).get(LATER)


@pytest.mark.parametrize(
    ("starts", "since", "known"),
    [
        ([(0, 0)], 0, 1),
        ([(0, 0), (1, 50)], 0, 2),
        ([(2, 0), (5, 50), (9, 80), (10, 100)], 0, 4),
        ([(2, 0), (5, 50), (9, 80), (10, 100)], 80, 2),
        ([(2, 0), (5, 50), (9, 80), (10, 100)], 60, 3),
        ([(2, 0), (5, 50), (9, 80), (10, 100)], 100, 1),
        ([(5, 50), (9, 80)], 0, 2),  # the beginning was deleted
        ([(each, each) for each in range(2 * MOST_EPOCHS)], 0, MOST_EPOCHS),
    ],
)
def test_epochs_are_read_back_to_that_of_the_offset(
    starts: list[tuple[int, int]], since: int, known: int
) -> None:
    found = asked(starts, 100, since, epoch=starts[-1][0])
    assert found is not None
    assert (found.epoch, found.end) == (starts[-1][0], 100)
    assert found.starts == starts[-known:]
    at = {offset: found.epoch_at(offset) for offset in (since, 99, 100)}
    epochs = LeaderEpochs(EpochStart(*each) for each in starts[-known:])
    expected = {offset: epochs.epoch_for(offset) for offset in (since, 99)}
    assert at == {**{offset: -1 if e is None else e for offset, e in expected.items()}, 100: -1}


@pytest.mark.parametrize(
    ("starts", "begin", "known"),
    [
        ([(1, 70)], 70, [(1, 70)]),  # epoch 0, or an unknown one, wrote the records before
        ([(1, 100)], 100, [(1, 100)]),
        ([(0, 70), (1, 80)], 70, [(0, 70), (1, 80)]),
        ([(0, 0), (1, 80)], 70, [(0, 70), (1, 80)]),  # deleted since
        ([(2, 30), (3, 40), (4, 80)], 50, [(3, 50), (4, 80)]),
    ],
)
def test_the_epochs_of_deleted_records_are_unknown(
    starts: list[tuple[int, int]], begin: int, known: list[tuple[int, int]]
) -> None:
    found = asked(starts, 100, 0, epoch=starts[-1][0], begin=begin)
    assert found is not None
    assert found.starts == known


@pytest.mark.parametrize(("starts", "epoch"), [([], 0), ([(3, 0)], 4), ([(3, 0)], -1)])
def test_an_answer_without_an_epoch_is_ignored(starts: list[tuple[int, int]], epoch: int) -> None:
    """Such an answer must not be taken for a log without records."""
    assert asked(starts, 100, 0, epoch) is None
