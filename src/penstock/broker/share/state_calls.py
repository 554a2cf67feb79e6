"""Calls to the share coordinator, which may be on this broker or another."""

from typing import Any, Protocol, TypeVar

import msgspec

from penstock.client.errors import BrokerRefused
from penstock.coordinator.result import EmptyReply, PendingReply
from penstock.coordinator.share.coordinator import ShareCoordinator
from penstock.coordinator.share.shard import NO_EPOCH, StateUpdate
from penstock.coordinator.share.state import (
    NO_START,
    UNKNOWN_COUNT,
    ShareGroupOffset,
    SharePartitionKey,
    StateBatch,
)
from penstock.errors import KafkaError
from penstock.wire.messages import (
    delete_share_group_state as deleting,
)
from penstock.wire.messages import (
    initialize_share_group_state as initializing,
)
from penstock.wire.messages import (
    read_share_group_state as reading,
)
from penstock.wire.messages import (
    read_share_group_state_summary as summarizing,
)
from penstock.wire.messages import (
    write_share_group_state as writing,
)
from penstock.wire.schema import Message

T_co = TypeVar("T_co", covariant=True)


class StateCall(Protocol[T_co]):
    """A call about one share-partition."""

    @property
    def key(self) -> SharePartitionKey: ...

    def here(self, coordinator: ShareCoordinator) -> PendingReply[Any]:
        """Call the coordinator on this broker."""

    def request(self) -> Message: ...

    def response(self) -> type[Message]: ...

    def reply(self, result: Any) -> T_co:
        """The reply, from the result for the one partition of a response."""


def reply_in(call: StateCall[T_co], response: Any) -> T_co | KafkaError:
    results = [part for topic in response.results for part in topic.partitions]
    if len(results) != 1:
        return BrokerRefused(-1, f"the state of {call.key}: {len(results)} results")
    (result,) = results
    if result.error_code:
        return BrokerRefused(result.error_code, f"the state of {call.key}")
    return call.reply(result)


class InitializeState(msgspec.Struct, frozen=True):
    """Start again at `start_offset`; without one, initialize only if there is no state yet."""

    key: SharePartitionKey
    state_epoch: int
    start_offset: int = NO_START

    def here(self, coordinator: ShareCoordinator) -> PendingReply[EmptyReply]:
        return coordinator.initialize(self.key, self.state_epoch, self.start_offset)

    def request(self) -> Message:
        group, topic_id, partition = self.key
        part = initializing.PartitionData(partition, self.state_epoch, self.start_offset)
        topic = initializing.InitializeStateData(topic_id, [part])
        return initializing.InitializeShareGroupStateRequest(group, [topic])

    def response(self) -> type[Message]:
        return initializing.InitializeShareGroupStateResponse

    def reply(self, _: Any) -> EmptyReply:
        return EmptyReply()


class ReadState(msgspec.Struct, frozen=True):
    """Read the state, for the partition's leader."""

    key: SharePartitionKey
    leader_epoch: int

    def here(self, coordinator: ShareCoordinator) -> PendingReply[ShareGroupOffset]:
        return coordinator.read(self.key, self.leader_epoch)

    def request(self) -> Message:
        group, topic_id, partition = self.key
        part = reading.PartitionData(partition, self.leader_epoch)
        return reading.ReadShareGroupStateRequest(group, [reading.ReadStateData(topic_id, [part])])

    def response(self) -> type[Message]:
        return reading.ReadShareGroupStateResponse

    def reply(self, result: reading.PartitionResult) -> ShareGroupOffset:
        return ShareGroupOffset(
            snapshot_epoch=NO_EPOCH,
            state_epoch=result.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=result.start_offset,
            batches=tuple(
                StateBatch(
                    each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
                )
                for each in result.state_batches
            ),
        )


class WriteState(msgspec.Struct, frozen=True):
    """Write changes of the state, by the partition's leader."""

    key: SharePartitionKey
    update: StateUpdate

    def here(self, coordinator: ShareCoordinator) -> PendingReply[EmptyReply]:
        return coordinator.write(self.key, self.update)

    def request(self) -> Message:
        group, topic_id, partition = self.key
        update = self.update
        part = writing.PartitionData(
            partition=partition,
            state_epoch=update.state_epoch,
            leader_epoch=update.leader_epoch,
            start_offset=update.start_offset,
            delivery_complete_count=update.delivery_complete_count,
            state_batches=[writing.StateBatch(*each) for each in update.batches],
        )
        return writing.WriteShareGroupStateRequest(
            group, [writing.WriteStateData(topic_id, [part])]
        )

    def response(self) -> type[Message]:
        return writing.WriteShareGroupStateResponse

    def reply(self, _: Any) -> EmptyReply:
        return EmptyReply()


class DeleteState(msgspec.Struct, frozen=True):
    """Delete the state: the group is deleted, or its offsets in a topic."""

    key: SharePartitionKey

    def here(self, coordinator: ShareCoordinator) -> PendingReply[EmptyReply]:
        return coordinator.delete(self.key)

    def request(self) -> Message:
        group, topic_id, partition = self.key
        topic = deleting.DeleteStateData(topic_id, [deleting.PartitionData(partition)])
        return deleting.DeleteShareGroupStateRequest(group, [topic])

    def response(self) -> type[Message]:
        return deleting.DeleteShareGroupStateResponse

    def reply(self, _: Any) -> EmptyReply:
        return EmptyReply()


class SummarizeState(msgspec.Struct, frozen=True):
    """Read the share-partition's start, for administrators."""

    key: SharePartitionKey

    def here(self, coordinator: ShareCoordinator) -> PendingReply[ShareGroupOffset | EmptyReply]:
        return coordinator.summary(self.key)

    def request(self) -> Message:
        group, topic_id, partition = self.key
        part = summarizing.PartitionData(partition, NO_EPOCH)
        topic = summarizing.ReadStateSummaryData(topic_id, [part])
        return summarizing.ReadShareGroupStateSummaryRequest(group, [topic])

    def response(self) -> type[Message]:
        return summarizing.ReadShareGroupStateSummaryResponse

    def reply(self, result: summarizing.PartitionResult) -> ShareGroupOffset:
        return ShareGroupOffset(
            snapshot_epoch=NO_EPOCH,
            state_epoch=result.state_epoch,
            leader_epoch=result.leader_epoch,
            start_offset=result.start_offset,
            delivery_complete_count=result.delivery_complete_count,
        )


NOTHING_KNOWN = ShareGroupOffset(
    snapshot_epoch=NO_EPOCH,
    state_epoch=0,
    leader_epoch=NO_EPOCH,
    start_offset=NO_START,
    delivery_complete_count=UNKNOWN_COUNT,
)
"""The summary of a share-partition that has no state."""
