"""The ids that a broker hands out to producers."""

import asyncio

import pytest

from penstock.broker.transaction.producer_ids import ProducerIdPool
from penstock.controller.producer_ids import ProducerIds
from penstock.errors import KafkaError
from penstock.types import ProducerId

BLOCK = 4


class Blocks:
    """The controller's side: a block for each request, a turn of the loop later."""

    def __init__(self) -> None:
        self.requests = 0
        self.is_away = False

    async def next(self) -> ProducerIds:
        start = self.requests * BLOCK
        self.requests += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise KafkaError("no controller")
        return ProducerIds(ProducerId(start), ProducerId(start + BLOCK))


def test_a_burst_of_producers_requests_no_more_blocks_than_it_needs() -> None:
    blocks = Blocks()

    async def burst() -> list[ProducerId]:
        pool = ProducerIdPool(blocks.next)
        async with asyncio.TaskGroup() as tasks:
            taking = [tasks.create_task(pool.take()) for _ in range(10)]
        return [each.result() for each in taking]

    taken = asyncio.run(burst())
    assert sorted(taken) == list(range(10))
    assert blocks.requests == 3


def test_after_a_failed_request_the_next_one_is_sent() -> None:
    blocks = Blocks()

    async def scenario() -> ProducerId:
        pool = ProducerIdPool(blocks.next)
        blocks.is_away = True
        with pytest.raises(KafkaError):
            await pool.take()
        blocks.is_away = False
        return await pool.take()

    assert asyncio.run(scenario()) == BLOCK


def test_producers_that_wait_together_fail_together() -> None:
    """Each would otherwise wait for the controller itself, one after the other."""
    blocks = Blocks()
    blocks.is_away = True

    async def burst() -> list[object]:
        pool = ProducerIdPool(blocks.next)

        async def take() -> object:
            try:
                return await pool.take()
            except KafkaError as error:
                return str(error)

        async with asyncio.TaskGroup() as tasks:
            taking = [tasks.create_task(take()) for _ in range(10)]
        return [each.result() for each in taking]

    assert asyncio.run(burst()) == ["no controller"] * 10
    assert blocks.requests == 1


def test_a_cancelled_request_is_repeated_by_the_next_caller() -> None:
    blocks = Blocks()

    async def scenario() -> ProducerId:
        pool = ProducerIdPool(blocks.next)
        async with asyncio.TaskGroup() as tasks:
            first, second = (tasks.create_task(pool.take()) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
        return second.result()

    assert asyncio.run(scenario()) == BLOCK
