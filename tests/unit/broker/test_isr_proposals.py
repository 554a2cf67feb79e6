"""ISR proposals reach the controller and get their outcome despite failures on the way."""

import asyncio
from typing import cast

import pytest
from msgspec.structs import replace

from penstock.broker.peers import isr_proposals
from penstock.broker.peers.controller_link import ControllerLink
from penstock.broker.peers.isr_proposals import IsrProposals
from penstock.errors import ErrorCode, ProtocolError
from penstock.replication.proposal import Accepted, InSyncReplica, IsrProposal, Settlement
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)

WAIT_S = 10


def proposal(index: int, partition_epoch: int = 0) -> IsrProposal:
    return IsrProposal(
        TopicPartition("t", index), Uuid(bytes(16)), 1, partition_epoch, (InSyncReplica(1),)
    )


class Link:
    """A controller that accepts everything, but fails the first `failures` times."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures

    async def call(self, request: AlterPartitionRequest, _: object) -> AlterPartitionResponse:
        if self.failures:
            self.failures -= 1
            raise ProtocolError("the response is cut off")
        return AlterPartitionResponse(
            topics=[
                ResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        ResponsePartitionData(
                            partition_index=each.partition_index,
                            leader_epoch=each.leader_epoch,
                            partition_epoch=each.partition_epoch + 1,
                            isr=[member.broker_id for member in each.new_isr_with_epochs],
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


class Outcomes:
    """Settled proposals; `raises_once` are partitions whose first outcome cannot be applied."""

    def __init__(self, raises_once: set[int]) -> None:
        self.settled: list[tuple[int, int]] = []
        self.raises_once = raises_once

    def settle(self, each: IsrProposal, settlement: Settlement) -> None:
        assert isinstance(settlement, Accepted)
        index = each.topic_partition.partition
        if index in self.raises_once:
            self.raises_once.discard(index)
            raise RuntimeError(f"t-{index}")
        self.settled.append((index, settlement.partition_epoch))


@pytest.mark.parametrize(
    ("failures", "raises_once", "settled"),
    [
        (0, set(), [(0, 1), (1, 1), (2, 1)]),
        (2, set(), [(0, 1), (1, 1), (2, 1)]),
        (0, {0}, [(1, 1), (2, 1), (0, 1)]),
        (1, {1}, [(0, 1), (2, 1), (1, 1)]),
        (0, {0, 1, 2}, [(0, 1), (1, 1), (2, 1)]),
    ],
)
def test_a_proposal_survives_an_error_of_the_loop(
    failures: int, raises_once: set[int], settled: list[tuple[int, int]]
) -> None:
    outcomes = Outcomes(raises_once)
    proposals = IsrProposals(
        BrokerId(1), cast("ControllerLink", Link(failures)), lambda: 5, outcomes.settle
    )
    for index in range(3):
        proposals.propose(proposal(index))
    asyncio.run(until_settled(proposals, outcomes, len(settled)))
    assert outcomes.settled == settled


def test_a_newer_proposal_replaces_one_that_is_requeued() -> None:
    outcomes = Outcomes(set())
    link = Link(1)
    proposals = IsrProposals(BrokerId(1), cast("ControllerLink", link), lambda: 5, outcomes.settle)
    proposals.propose(proposal(0))

    async def main() -> None:
        with pytest.raises(ProtocolError):
            await proposals.run()
        proposals.propose(proposal(0, partition_epoch=7))
        await until_settled(proposals, outcomes, 1)

    asyncio.run(main())
    assert outcomes.settled == [(0, 8)]


class RefusesTheFirst(Link):
    """Always refuses partition 0, and counts its attempts."""

    attempts = 0

    async def call(self, request: AlterPartitionRequest, _: object) -> AlterPartitionResponse:
        response = await super().call(request, _)
        (topic,) = response.topics
        reported = [self._refused(each) for each in topic.partitions]
        return replace(response, topics=[replace(topic, partitions=reported)])

    def _refused(self, each: ResponsePartitionData) -> ResponsePartitionData:
        if each.partition_index:
            return each
        self.attempts += 1
        return replace(each, error_code=ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_proposal_that_is_always_refused_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isr_proposals, "RETRY_S", 0.001)
    monkeypatch.setattr(isr_proposals, "RETRY_MAX_S", 3600)
    link = RefusesTheFirst()
    settled: list[int] = []

    def settle(each: IsrProposal, settlement: Settlement) -> None:
        if isinstance(settlement, Accepted):
            settled.append(each.topic_partition.partition)
        else:
            proposals.propose(each)

    proposals = IsrProposals(BrokerId(1), cast("ControllerLink", link), lambda: 5, settle)

    async def main() -> None:
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(proposals.run())
            proposals.propose(proposal(0))
            while link.attempts < 8:
                await asyncio.sleep(0.01)
            proposals.propose(proposal(1))
            while not settled:
                await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(main())
    assert settled == [1]
    assert link.attempts < 20, "its pauses grow"


async def until_settled(proposals: IsrProposals, outcomes: Outcomes, count: int) -> None:
    """Run the loop again after each error, as its supervisor does."""
    async with asyncio.timeout(WAIT_S):
        while len(outcomes.settled) < count:
            try:
                async with asyncio.TaskGroup() as tasks:
                    running = tasks.create_task(proposals.run())
                    while len(outcomes.settled) < count and not running.done():
                        await asyncio.sleep(0)
                    running.cancel()
            except* (ProtocolError, RuntimeError):
                pass
