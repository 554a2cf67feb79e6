"""Sends ISR proposals to the controller (AlterPartition): all waiting ones in one request."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from penstock.broker.peers.controller_link import ControllerLink
from penstock.errors import ErrorCode, KafkaError
from penstock.replication.proposal import Accepted, IsrProposal, Rejected, Settlement
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)

logger = logging.getLogger(__name__)

RETRY_S = 0.05
RETRY_MAX_S = 0.5


class IsrProposals:
    """Sends one request at a time; calls `on_settled` with the outcome of each proposal."""

    def __init__(
        self,
        broker_id: BrokerId,
        link: ControllerLink,
        broker_epoch: Callable[[], int],
        on_settled: Callable[[IsrProposal, Settlement], object],
    ) -> None:
        self._broker_id, self._link = broker_id, link
        self._broker_epoch, self._on_settled = broker_epoch, on_settled
        self._waiting: dict[TopicPartition, IsrProposal] = {}
        self._more = asyncio.Event()

    def propose(self, proposal: IsrProposal) -> None:
        """Send the proposal soon. It replaces a waiting proposal for the same partition."""
        self._waiting[proposal.topic_partition] = proposal
        self._more.set()

    async def run(self) -> None:
        pause_s = RETRY_S
        while True:
            await self._more.wait()
            self._more.clear()
            sent = list(self._waiting.values())
            unsettled, self._waiting = self._waiting, {}
            try:
                for proposal, settlement in zip(sent, await self._sent(sent), strict=True):
                    # Move it to the end, in case its outcome raises: the next request then begins
                    # with the others.
                    unsettled[proposal.topic_partition] = unsettled.pop(proposal.topic_partition)
                    self._on_settled(proposal, settlement)
                    del unsettled[proposal.topic_partition]
            finally:
                self._put_back(unsettled)
            if self._waiting:
                await self._pause(sent, pause_s)
            pause_s = min(2 * pause_s, RETRY_MAX_S) if self._waiting else RETRY_S

    async def _pause(self, sent: Iterable[IsrProposal], pause_s: float) -> None:
        """Back off while only failed proposals wait, which were proposed again at once; a new one
        ends the pause.
        """
        await asyncio.sleep(RETRY_S)
        if {id(each) for each in sent}.issuperset(map(id, self._waiting.values())):
            self._more.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s - RETRY_S):
                    await self._more.wait()
            self._more.set()

    def _put_back(self, unsettled: Mapping[TopicPartition, IsrProposal]) -> None:
        """Queue unsettled proposals again after an error, for the next `run`. A partition makes no
        new proposal before the last has an outcome, so a lost one would freeze its ISR for ever.
        """
        if unsettled:
            self._waiting = {**unsettled, **self._waiting}
            self._more.set()

    async def _sent(self, proposals: list[IsrProposal]) -> list[Settlement]:
        request = altered(self._broker_id, self._broker_epoch(), proposals)
        try:
            response = await self._link.call(request, AlterPartitionResponse)
        except KafkaError as error:
            return [Rejected(error.code) for _ in proposals]
        if response.error_code:
            return [Rejected(ErrorCode(response.error_code)) for _ in proposals]
        return settlements(proposals, response)


def altered(
    broker: BrokerId, epoch: int, proposals: Iterable[IsrProposal]
) -> AlterPartitionRequest:
    topics: dict[Uuid, list[PartitionData]] = {}
    for each in proposals:
        topics.setdefault(each.topic_id, []).append(
            PartitionData(
                partition_index=each.topic_partition.partition,
                leader_epoch=each.leader_epoch,
                new_isr_with_epochs=[
                    BrokerState(broker_id=member.broker, broker_epoch=member.broker_epoch)
                    for member in each.isr
                ],
                partition_epoch=each.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        broker_id=broker,
        broker_epoch=epoch,
        topics=[
            TopicData(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
    )


def settlements(
    proposals: Iterable[IsrProposal], response: AlterPartitionResponse
) -> list[Settlement]:
    answers = {
        (topic.topic_id, each.partition_index): each
        for topic in response.topics
        for each in topic.partitions
    }
    return [
        _settlement(answers.get((each.topic_id, each.topic_partition.partition)))
        for each in proposals
    ]


def _settlement(answer: ResponsePartitionData | None) -> Settlement:
    if answer is None:
        return Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if answer.error_code:
        return Rejected(ErrorCode(answer.error_code))
    return Accepted(answer.leader_epoch, answer.partition_epoch, tuple(answer.isr))
