import errno

import pytest

from penstock.log.store import PartitionOffline
from penstock.replication.partitions import Partitions
from penstock.testing.logs import PARTITION, ROOT, TOPIC_ID, LogRig, batch_of
from penstock.types import BrokerId


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


def test_a_dropped_partition_takes_its_copy_along() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    partitions = Partitions(BrokerId(0), rig.store)
    partitions.drop(*PARTITION, 0)  # known from start-up alone: nobody has led it yet
    assert rig.store.logs == rig.store.future_logs == {}
    rig.crash()
    assert rig.store.logs == rig.store.future_logs == {}
