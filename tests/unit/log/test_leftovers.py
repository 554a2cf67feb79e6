"""Files that a crash or an unfinished compaction left behind."""

import pytest

from penstock.config.topic import TopicConfig
from penstock.testing.logs import ROOT, LogRig, batch_of

CONFIG = TopicConfig(segment_bytes=400, segment_index_bytes=1_200)
LOG_PATH = ROOT / "d0" / "orders-0"


def stopped() -> LogRig:
    """Records 0 to 19 in several segments of five."""
    rig = LogRig(CONFIG)
    for n in range(20):
        rig.append(batch_of(b"%02d" % n))
    rig.store.close()
    return rig


def start(rig: LogRig) -> LogRig:
    rig.store = rig._open_store()
    return rig


def copy(rig: LogRig, name: str, to: str) -> None:
    rig.files.open(LOG_PATH / to, create=True).append(rig.files.read(LOG_PATH / name))


def base(rig: LogRig, number: int) -> int:
    return list(rig.log.segments)[number].base_offset


def test_deleted_and_temporary_files_are_removed() -> None:
    rig = stopped()
    for name in ("00000000000000000000.log.deleted", "leader-epoch-checkpoint.tmp"):
        rig.files.open(LOG_PATH / name, create=True)
    start(rig)
    names = rig.files.names(LOG_PATH)
    assert not any(name.endswith((".deleted", ".tmp")) for name in names)
    assert len(rig.read_all()) == 20


@pytest.mark.row("A095")
def test_an_unfinished_compaction_is_removed_with_the_swap_files_of_its_group() -> None:
    rig = stopped()
    first, second = base(rig, 0), base(rig, 1)
    copy(rig, f"{first:020d}.log", f"{first:020d}.log.cleaned")
    copy(rig, f"{second:020d}.log", f"{second:020d}.log.swap")
    start(rig)
    assert len(rig.read_all()) == 20
    assert not any(name.endswith((".cleaned", ".swap")) for name in rig.files.names(LOG_PATH))


def test_a_finished_compaction_replaces_its_segments() -> None:
    rig = stopped()
    first, second, third = base(rig, 0), base(rig, 1), base(rig, 2)
    # Both first segments were merged: only the records of the second are left.
    copy(rig, f"{second:020d}.log", f"{first:020d}.log.swap")
    start(rig)
    assert [segment.base_offset for segment in rig.log.segments][:2] == [first, third]
    assert rig.read_all()[0] == (second, b"%02d" % second)
    assert len(rig.read_all()) == 20 - second


def test_an_empty_segment_replaces_the_index_of_aborted_transactions_too() -> None:
    """Without their markers, consumers would skip what these producers write next."""
    rig = LogRig(CONFIG)
    rig.append(batch_of(b"aborted", producer_id=9, sequence=0, transactional=True))
    rig.end_transaction(9, committed=False)
    rig.log.roll(0)
    rig.append(batch_of(b"kept", producer_id=9, sequence=1))
    rig.store.close()
    assert f"{0:020d}.txnindex" in rig.files.names(LOG_PATH)
    for suffix in (".log", ".index", ".timeindex"):
        rig.files.open(LOG_PATH / f"{0:020d}{suffix}.swap", create=True)
    start(rig)
    assert rig.read_all() == [(2, b"kept")]
    assert rig.log.aborted_between(0, 3) == []


def test_a_swap_stopped_between_two_renames_is_completed() -> None:
    rig = stopped()
    first = base(rig, 0)
    rig.files.rename(LOG_PATH / f"{first:020d}.index", LOG_PATH / f"{first:020d}.index.swap")
    start(rig)
    assert f"{first:020d}.index" in rig.files.names(LOG_PATH)
    assert len(rig.read_all()) == 20


def test_a_damaged_swap_file_takes_its_directory_offline() -> None:
    """Nothing else records which segments it was to replace."""
    rig = stopped()
    first = base(rig, 0)
    copy(rig, f"{first:020d}.log", f"{first:020d}.log.swap")
    rig.fake.flip_bit(LOG_PATH / f"{first:020d}.log.swap", 8 * 16)  # the magic
    start(rig)
    assert [path.name for path, _ in rig.offline] == ["d0"]


def test_indexes_without_a_segment_are_removed() -> None:
    rig = stopped()
    rig.files.open(LOG_PATH / "00000000000000000777.index", create=True)
    start(rig)
    assert "00000000000000000777.index" not in rig.files.names(LOG_PATH)
