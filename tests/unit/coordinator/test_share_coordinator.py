"""The state of share-partitions: writes, fencing, loading."""

import pytest

from penstock.config.share import ShareConfig
from penstock.coordinator.result import Now, PendingReply
from penstock.coordinator.share.errors import FencedShareLeader, FencedStateEpoch, NotInitialized
from penstock.coordinator.share.records import ShareFormat, ShareRecord
from penstock.coordinator.share.shard import ShareResult, ShareShard, StateUpdate
from penstock.coordinator.share.state import SharePartitionKey, StateBatch, merged
from penstock.coordinator.storage import RawRecord
from penstock.errors import ProtocolError
from penstock.types import Uuid
from penstock.wire.messages.share_snapshot_value import ShareSnapshotValue

KEY = SharePartitionKey("g", Uuid(b"t" * 16), 3)
NOW = Now(1000, 5)
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4


class Story:
    """A shard whose records go through their encoding, as in a log."""

    def __init__(self, updates: int = 500) -> None:
        self.log: list[RawRecord] = []
        self.shard = ShareShard(
            ShareConfig(share_coordinator_snapshot_update_records_per_snapshot=updates)
        )

    def done(self, result: ShareResult) -> object:
        for record in result.records:
            raw = ShareFormat().encode(record)
            self.log.append(raw)
            again = ShareFormat().decode(raw)
            assert again == record
            self.shard.replay(again)
        return result.answers[0].reply

    def initialize(self, epoch: int = 1, start: int = 0) -> object:
        return self.done(self.shard.initialize(NOW, PendingReply(0), KEY, epoch, start))

    def read(self, leader: int) -> object:
        return self.done(self.shard.read(NOW, PendingReply(0), KEY, leader))

    def write(
        self, *batches: StateBatch, start: int = -1, epoch: int = 1, leader: int = 1
    ) -> object:
        update = StateUpdate(epoch, leader, start, 0, batches)
        return self.done(self.shard.write(NOW, PendingReply(0), KEY, update))

    def reloaded(self) -> ShareShard:
        shard = ShareShard(ShareConfig())
        for raw in self.log:
            record = ShareFormat().decode(raw)
            assert record is not None
            shard.replay(record)
        return shard


def test_updates_add_up_and_are_loaded_again() -> None:
    story = Story()
    story.initialize()
    story.write(StateBatch(0, 9, AVAILABLE, 1))
    story.write(StateBatch(3, 4, ACKNOWLEDGED, 2), start=2)
    expected = (
        StateBatch(2, 2, AVAILABLE, 1),
        StateBatch(3, 4, ACKNOWLEDGED, 2),
        StateBatch(5, 9, AVAILABLE, 1),
    )
    known = story.shard.offsets[KEY]
    assert (known.start_offset, known.batches) == (2, expected)
    assert story.reloaded().offsets == story.shard.offsets


def test_a_snapshot_replaces_the_updates_after_a_while() -> None:
    story = Story(updates=2)
    story.initialize()
    for offset in range(7):
        story.write(StateBatch(offset, offset, ACKNOWLEDGED, 1), start=offset + 1)
    kinds = [raw.key[1] for raw in story.log]
    assert kinds == [0, 1, 1, 0, 1, 1, 0, 1]
    assert story.shard.offsets[KEY].start_offset == 7
    assert story.reloaded().offsets == story.shard.offsets


def test_a_new_leader_fences_the_old_one() -> None:
    story = Story()
    story.initialize()
    story.read(5)
    with pytest.raises(FencedShareLeader):
        story.write(leader=4)
    with pytest.raises(FencedShareLeader):
        story.read(4)
    story.write(leader=5)


def test_altered_offsets_fence_earlier_state_epochs() -> None:
    story = Story()
    story.initialize(epoch=1)
    story.write(StateBatch(0, 5, ARCHIVED, 1), epoch=1)
    story.initialize(epoch=4, start=2)
    assert story.shard.offsets[KEY].batches == ()
    with pytest.raises(FencedStateEpoch):
        story.write(epoch=1)
    with pytest.raises(FencedStateEpoch):
        story.initialize(epoch=3)


def test_state_of_a_deleted_group_is_not_written_to_its_successor() -> None:
    story = Story()
    story.initialize(epoch=5)
    story.done(story.shard.delete(PendingReply(0), KEY))
    story.initialize(epoch=1, start=-1)
    with pytest.raises(FencedStateEpoch):
        story.write(epoch=5, start=500)


def test_initializing_without_a_start_replaces_no_state() -> None:
    story = Story()
    story.initialize(epoch=1, start=-1)
    story.write(StateBatch(7, 8, ACKNOWLEDGED, 1), start=5)
    before = story.shard.offsets[KEY]
    for epoch in (1, 2, 0):  # a delayed request; a group whose own record lags behind its state
        story.initialize(epoch, start=-1)
    assert story.shard.offsets[KEY] == before
    assert story.reloaded().offsets == story.shard.offsets


def test_state_that_was_never_initialized_or_is_deleted_is_refused() -> None:
    story = Story()
    with pytest.raises(NotInitialized):
        story.write()
    story.initialize()
    story.done(story.shard.delete(PendingReply(0), KEY))
    with pytest.raises(NotInitialized):
        story.read(1)
    assert story.reloaded().offsets == {}


def test_a_snapshot_of_everything_makes_earlier_records_obsolete() -> None:
    story = Story()
    story.initialize()
    story.write(StateBatch(0, 0, ACKNOWLEDGED, 1), start=1)
    before = len(story.log)
    story.done(story.shard.everything(NOW, PendingReply(0)))
    story.log = story.log[before:]
    assert story.reloaded().offsets[KEY].start_offset == 1


def test_newer_batches_win_and_equal_neighbours_are_merged() -> None:
    known = [StateBatch(0, 4, AVAILABLE, 1), StateBatch(5, 9, AVAILABLE, 2)]
    assert merged(known, [StateBatch(2, 6, ACKNOWLEDGED, 2)], 1) == (
        StateBatch(1, 1, AVAILABLE, 1),
        StateBatch(2, 6, ACKNOWLEDGED, 2),
        StateBatch(7, 9, AVAILABLE, 2),
    )
    assert merged(known, [StateBatch(0, 4, AVAILABLE, 2)], 0) == (StateBatch(0, 9, AVAILABLE, 2),)
    assert merged(known, [], 5) == (StateBatch(5, 9, AVAILABLE, 2),)


def test_a_late_write_does_not_revert_finished_records() -> None:
    story = Story()
    story.initialize()
    story.write(StateBatch(7, 8, ACKNOWLEDGED, 1), StateBatch(10, 10, ARCHIVED, 5), start=5)
    story.write(StateBatch(2, 12, AVAILABLE, 1), start=2)
    known = story.shard.offsets[KEY]
    assert known.start_offset == 5
    assert known.batches == (
        StateBatch(5, 6, AVAILABLE, 1),
        StateBatch(7, 8, ACKNOWLEDGED, 1),
        StateBatch(9, 9, AVAILABLE, 1),
        StateBatch(10, 10, ARCHIVED, 5),
        StateBatch(11, 12, AVAILABLE, 1),
    )
    assert story.reloaded().offsets == story.shard.offsets


def test_records_of_other_types_are_skipped_and_newer_versions_refused() -> None:
    assert ShareFormat().decode(RawRecord(b"\0\7", b"")) is None
    raw = ShareFormat().encode(ShareRecord(KEY, ShareSnapshotValue()))
    assert raw.value is not None
    with pytest.raises(ProtocolError):
        ShareFormat().decode(RawRecord(raw.key, b"\0\1" + raw.value[2:]))
    with pytest.raises(ProtocolError):
        ShareFormat().decode(RawRecord(b"", None))


def test_a_late_write_does_not_release_a_record_that_becomes_a_dead_letter() -> None:
    known = [StateBatch(0, 0, ARCHIVING, 5)]
    assert merged(known, [StateBatch(0, 1, AVAILABLE, 4)], 0) == (
        StateBatch(0, 0, ARCHIVING, 5),
        StateBatch(1, 1, AVAILABLE, 4),
    )
    assert merged(known, [StateBatch(0, 0, ARCHIVED, 5)], 0) == (StateBatch(0, 0, ARCHIVED, 5),)
