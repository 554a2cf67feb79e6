"""The share-partitions of one partition of `__share_group_state`."""

from collections.abc import Collection
from typing import TypeAlias

import msgspec

from penstock.config.share import ShareConfig
from penstock.coordinator.result import CoordinatorResult, EmptyReply, Now, PendingReply, answer
from penstock.coordinator.share.errors import (
    FencedShareLeader,
    FencedStateEpoch,
    InvalidShareState,
    NotInitialized,
)
from penstock.coordinator.share.records import (
    ShareRecord,
    read_batches,
    snapshot_batches,
    update_batches,
)
from penstock.coordinator.share.state import (
    NO_START,
    ShareGroupOffset,
    SharePartitionKey,
    StateBatch,
    merged,
)
from penstock.errors import ProtocolError
from penstock.types import Uuid
from penstock.wire.messages.share_snapshot_value import ShareSnapshotValue
from penstock.wire.messages.share_update_value import ShareUpdateValue

NO_EPOCH = -1


class StateUpdate(msgspec.Struct, frozen=True):
    """A leader's update of a share-partition's state; a start of -1 means that it has not moved."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class NoSoftState(msgspec.Struct, frozen=True):
    """Everything is in records."""


ShareResult: TypeAlias = CoordinatorResult[ShareRecord, NoSoftState]


class ShareShard:
    """Operations only decide; `replay` only changes the state."""

    def __init__(self, config: ShareConfig) -> None:
        self._config = config
        self.offsets: dict[SharePartitionKey, ShareGroupOffset] = {}
        self.records = 0
        """Records that a snapshot of everything would replace."""

    # --- operations

    def initialize(
        self,
        now: Now,
        pending: PendingReply[EmptyReply],
        key: SharePartitionKey,
        state_epoch: int,
        start_offset: int,
    ) -> ShareResult:
        """Initialize the state at `start_offset`.

        Without a start offset, existing state is kept: the group coordinator may have missed the
        reply, or seen the topic again. Deleting state is another request.
        """
        known = self.offsets.get(key)
        if known is not None and start_offset == NO_START:
            return CoordinatorResult(answers=(answer(pending, EmptyReply()),), reads_state=True)
        if known is not None and state_epoch < known.state_epoch:
            raise FencedStateEpoch(f"{key} is in state epoch {known.state_epoch}")
        if start_offset < NO_START:
            raise InvalidShareState(f"{key} cannot start at {start_offset}")
        new = ShareGroupOffset(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=NO_EPOCH,
            start_offset=start_offset,
            delivery_complete_count=0,
            created_ms=now.wall_ms,
            written_ms=now.wall_ms,
        )
        return CoordinatorResult((snapshot(key, new),), (answer(pending, EmptyReply()),))

    def read(
        self,
        now: Now,
        pending: PendingReply[ShareGroupOffset],
        key: SharePartitionKey,
        leader_epoch: int,
    ) -> ShareResult:
        """The state, for a new leader of the partition; former leaders cannot write any more."""
        known = self._checked(key, leader_epoch)
        found = (answer(pending, known),)
        if leader_epoch <= known.leader_epoch:
            return CoordinatorResult(answers=found, reads_state=True)
        new = msgspec.structs.replace(
            known,
            leader_epoch=leader_epoch,
            snapshot_epoch=known.snapshot_epoch + 1,
            written_ms=now.wall_ms,
        )
        return CoordinatorResult((snapshot(key, new),), found)

    def write(
        self,
        now: Now,
        pending: PendingReply[EmptyReply],
        key: SharePartitionKey,
        update: StateUpdate,
    ) -> ShareResult:
        known = self._checked(key, update.leader_epoch)
        if update.state_epoch != known.state_epoch:  # a deleted group may have had a higher one
            raise FencedStateEpoch(f"{key} is in state epoch {known.state_epoch}")
        if any(each.first > each.last for each in update.batches):
            raise InvalidShareState(f"{key}: a batch ends before it begins")
        record = ShareRecord(
            key,
            ShareUpdateValue(
                snapshot_epoch=known.snapshot_epoch,
                leader_epoch=update.leader_epoch,
                start_offset=update.start_offset,
                delivery_complete_count=update.delivery_complete_count,
                state_batches=update_batches(update.batches),
            ),
        )
        if known.updates >= self._config.share_coordinator_snapshot_update_records_per_snapshot:
            new = updated(known, update)
            new = msgspec.structs.replace(
                new, snapshot_epoch=known.snapshot_epoch + 1, written_ms=now.wall_ms
            )
            record = snapshot(key, new)
        return CoordinatorResult((record,), (answer(pending, EmptyReply()),))

    def delete(self, pending: PendingReply[EmptyReply], key: SharePartitionKey) -> ShareResult:
        """Delete the state. It is no error if there is none."""
        records = (ShareRecord(key, None),) if key in self.offsets else ()
        return CoordinatorResult(records, (answer(pending, EmptyReply()),))

    def summary(
        self, pending: PendingReply[ShareGroupOffset | EmptyReply], key: SharePartitionKey
    ) -> ShareResult:
        """The state for administrators; an empty reply: there is none."""
        known = self.offsets.get(key)
        return CoordinatorResult(
            answers=(answer(pending, known or EmptyReply()),), reads_state=True
        )

    def everything(
        self, now: Now, pending: PendingReply[EmptyReply], gone: Collection[Uuid] = ()
    ) -> ShareResult:
        """Snapshots of all share-partitions, which supersede every earlier record.

        The state of the topics in `gone` is deleted.
        """
        records = tuple(
            ShareRecord(key, None)
            if key.topic_id in gone
            else snapshot(
                key,
                msgspec.structs.replace(
                    known, snapshot_epoch=known.snapshot_epoch + 1, written_ms=now.wall_ms
                ),
            )
            for key, known in self.offsets.items()
        )
        return CoordinatorResult(records, (answer(pending, EmptyReply()),), may_split=True)

    def _checked(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        known = self.offsets.get(key)
        if known is None:
            raise NotInitialized(f"the state of {key} is not initialized")
        if leader_epoch != NO_EPOCH and leader_epoch < known.leader_epoch:
            raise FencedShareLeader(f"{key} has a leader of epoch {known.leader_epoch}")
        return known

    # --- changes of the state

    def replay(self, record: ShareRecord) -> None:
        key, value = record.key, record.value
        self.records += 1
        if value is None:
            self.offsets.pop(key, None)
        elif isinstance(value, ShareSnapshotValue):
            self.offsets[key] = ShareGroupOffset(
                snapshot_epoch=value.snapshot_epoch,
                state_epoch=value.state_epoch,
                leader_epoch=value.leader_epoch,
                start_offset=value.start_offset,
                delivery_complete_count=value.delivery_complete_count,
                created_ms=value.create_timestamp,
                written_ms=value.write_timestamp,
                batches=read_batches(value.state_batches),
            )
        elif (known := self.offsets.get(key)) is not None:
            update = StateUpdate(
                known.state_epoch,
                value.leader_epoch,
                value.start_offset,
                value.delivery_complete_count,
                read_batches(value.state_batches),
            )
            self.offsets[key] = updated(known, update)

    def replay_pending(self, record: ShareRecord) -> None:
        raise ProtocolError(f"the record of {record.key} is part of a transaction")

    def apply_soft_state(self, soft_state: NoSoftState) -> None: ...

    def on_loaded(self, now: Now) -> None: ...

    def next_deadline_ms(self) -> int | None:
        return None

    def expire(self, now: Now) -> ShareResult:  # noqa: ARG002  nothing expires
        return CoordinatorResult()


def updated(known: ShareGroupOffset, update: StateUpdate) -> ShareGroupOffset:
    start = max(known.start_offset, update.start_offset)  # see `merged`
    return msgspec.structs.replace(
        known,
        leader_epoch=max(known.leader_epoch, update.leader_epoch),
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        batches=merged(known.batches, update.batches, start),
        updates=known.updates + 1,
    )


def snapshot(key: SharePartitionKey, state: ShareGroupOffset) -> ShareRecord:
    return ShareRecord(
        key,
        ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            create_timestamp=state.created_ms,
            write_timestamp=state.written_ms,
            state_batches=snapshot_batches(state.batches),
        ),
    )
