"""Which log a partition gets when it is created, and what is set aside."""

import errno

import pytest

from penstock.log.store import PartitionOffline
from penstock.replication.partitions import Partitions
from penstock.testing.logs import PARTITION, ROOT, TOPIC_ID, LogRig, batch_of
from penstock.types import NO_UUID, BrokerId, Uuid

ANOTHER_ID = Uuid(bytes(15) + b"2")


def test_a_partition_whose_log_may_be_offline_gets_no_empty_one() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    rig.append(batch_of(b"x"))
    rig.store.close()
    rig.fake.fail_next("open", errno.EIO)
    rig.store = rig._open_store()
    partitions = Partitions(BrokerId(0), rig.store)
    with pytest.raises(PartitionOffline):
        partitions.create(*PARTITION, TOPIC_ID, 0, is_new=False)
    assert partitions.create("new", 0, TOPIC_ID, 0).log.log_dir.path == ROOT / "d1"


def test_a_partition_adopts_a_topic_id_assigned_later() -> None:
    partitions = Partitions(BrokerId(0), LogRig().store)
    before = partitions.create("old", 0, NO_UUID, 0)
    after = partitions.create("old", 0, ANOTHER_ID, 0, is_new=False)
    assert after is before
    assert after.topic_id == ANOTHER_ID


def test_dropping_a_partition_deletes_its_future_log_too() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    partitions = Partitions(BrokerId(0), rig.store)
    partitions.drop(*PARTITION)  # loaded at startup, and never led or followed since
    assert rig.store.logs == rig.store.future_logs == {}
    rig.crash()
    assert rig.store.logs == rig.store.future_logs == {}


@pytest.mark.parametrize("is_known", [True, False])
def test_a_log_of_a_deleted_topic_of_the_same_name_is_set_aside(is_known: bool) -> None:
    rig = LogRig()
    rig.append(batch_of(b"of the deleted topic"))
    partitions = Partitions(BrokerId(0), rig.store)
    old = partitions.create(*PARTITION, TOPIC_ID, 0) if is_known else None
    if old is not None:
        old.lead(7, (0,))
    new = partitions.create(*PARTITION, ANOTHER_ID, 0, is_new=not is_known)
    assert new is partitions.get(*PARTITION)
    assert (new.topic_id, new.leader_epoch, new.log.end_offset) == (ANOTHER_ID, -1, 0)
    assert rig.store.topic_ids == {PARTITION: ANOTHER_ID}
    assert rig.store.count_stray() == 1
    if old is not None:
        assert not old.leads
        assert not old.is_in_tenure(0)


def test_a_log_without_an_id_does_not_belong_to_a_new_topic() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    del rig.store.topic_ids[PARTITION]
    partitions = Partitions(BrokerId(0), rig.store)
    assert partitions.create(*PARTITION, TOPIC_ID, 0, is_new=True).log.end_offset == 0
    assert rig.store.count_stray() == 1


def test_a_log_without_an_id_belongs_to_an_existing_topic() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    del rig.store.topic_ids[PARTITION]
    partitions = Partitions(BrokerId(0), rig.store)
    assert partitions.create(*PARTITION, TOPIC_ID, 0, is_new=False).log.end_offset == 1
    assert rig.store.topic_ids == {PARTITION: TOPIC_ID}


def test_a_controller_without_topic_ids_replaces_no_log() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    partitions = Partitions(BrokerId(0), rig.store)
    assert partitions.create(*PARTITION, NO_UUID, 0, is_new=True).log.end_offset == 1
