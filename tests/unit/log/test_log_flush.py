import errno
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from penstock.config.storage import StorageConfig
from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log.flush import Flusher
from penstock.log.log_dir import LogDirOffline
from penstock.log.upkeep import Upkeep
from penstock.testing.logs import PARTITION, LogRig, batch_of


class Loop:
    """Runs what the flusher's threads deliver when it is told to, as an event loop would."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run_one(self) -> None:
        self.calls.get(timeout=10)()


def test_requests_during_a_sync_share_the_next_one() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))
    first = flusher.request(rig.log)
    rig.append(batch_of(b"b"))
    later = [flusher.request(rig.log) for _ in range(5)]
    loop.run_one()
    assert first.result() == 1
    assert not any(future.done() for future in later)
    loop.run_one()
    assert [future.result() for future in later] == [2] * 5
    assert loop.calls.empty()
    assert rig.log.recovery_point == 2
    flusher.close()


def test_after_a_failed_sync_nobody_who_waited_is_told_that_all_is_well() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))
    rig.fake.fail_next("sync", errno.EIO)
    first = flusher.request(rig.log)
    second = flusher.request(rig.log)
    loop.run_one()
    for future in (first, second):
        with pytest.raises(StorageError, match="EIO"):
            future.result()
    with pytest.raises(LogDirOffline):
        flusher.request(rig.log).result()
    assert rig.log.recovery_point == 0
    assert rig.offline == [(rig.dirs[0], [PARTITION])]
    flusher.close()


def test_whoever_waits_for_a_flush_hears_of_a_bug_in_it() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))

    def broken() -> None:
        raise RuntimeError("a bug")

    rig.log.segments.active.file.sync = broken  # type: ignore[method-assign]
    waits = flusher.request(rig.log)
    with pytest.raises(RuntimeError):
        loop.run_one()
    assert isinstance(waits.exception(timeout=0), RuntimeError)
    flusher.run(broken, lambda _: None)
    with pytest.raises(RuntimeError):
        loop.run_one()
    flusher.close()


def test_a_log_that_is_deleted_during_a_flush_does_no_harm() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))
    flush = rig.log.begin_flush()
    log = rig.log
    rig.store.delete(PARTITION, 0)
    for name in rig.files.names(log.path):
        rig.files.remove(log.path / name)
    rig.files.remove_dir(log.path)
    flush.run()
    assert rig.offline == []
    flusher.close()


def test_flush_ms_and_rolls_lead_to_a_flush_by_and_by() -> None:
    rig, loop = LogRig(TopicConfig(flush_ms=1_000, segment_bytes=100)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig())
    rig.log.last_flush_ms = 500
    rig.append(batch_of(b"a"))
    upkeep.tick(1_499)
    assert loop.calls.empty()
    upkeep.tick(1_500)
    loop.run_one()
    assert rig.log.recovery_point == 1
    rig.append(batch_of(b"b" * 100))
    upkeep.tick(1_501)
    loop.run_one()
    assert rig.log.recovery_point == 2
    flusher.close()


def test_checkpoints_are_written_in_their_intervals_and_survive_a_crash() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig())
    upkeep.tick(0)
    for _ in range(9):
        rig.append(batch_of(b"x"))
    rig.log.advance_high_watermark(6)
    rig.log.flush()
    upkeep.tick(4_999)
    upkeep.tick(5_000)
    upkeep.tick(60_000)
    flusher.close()
    log_dir = rig.store.dirs[0]
    assert log_dir.read_offsets("recovery-point-offset-checkpoint") == {PARTITION: 9}
    rig.crash()
    assert rig.log.high_watermark == 6


def test_an_older_checkpoint_does_not_undo_a_newer_one() -> None:
    rig = LogRig()
    log_dir = rig.store.dirs[0]
    older = log_dir.checkpoint("recovery-point-offset-checkpoint", {PARTITION: 100})
    log_dir.checkpoint("recovery-point-offset-checkpoint", {PARTITION: 50})()
    older()
    assert log_dir.read_offsets("recovery-point-offset-checkpoint") == {PARTITION: 50}


def test_upkeep_applies_retention_and_removes_what_was_dropped() -> None:
    rig, loop = LogRig(TopicConfig(segment_bytes=100, retention_ms=1)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig())
    for _ in range(5):
        rig.append(batch_of(b"x" * 50))
    rig.log.advance_high_watermark(5)
    upkeep.tick(0)
    upkeep.tick(300_000)
    assert len(rig.log.segments) == 1
    assert any(name.endswith(".deleted") for name in rig.files.names(rig.log.path))
    upkeep.tick(360_000)
    assert not any(name.endswith(".deleted") for name in rig.files.names(rig.log.path))
    flusher.close()


def test_idle_producers_are_forgotten() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig(producer_id_expiration_ms=1_000_000))
    rig.append(batch_of(b"x", producer_id=1, sequence=0, timestamp=0))
    upkeep.tick(0)
    upkeep.tick(600_000)
    assert 1 in rig.log.producers.producers
    upkeep.tick(1_200_000)
    assert 1 not in rig.log.producers.producers
    flusher.close()
