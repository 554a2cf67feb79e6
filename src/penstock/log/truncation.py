"""Removes records from the end of a log, as a follower does whose log differs from its leader's."""

from penstock.log.epochs import LeaderEpochs
from penstock.log.files import check_spare, finished_or_failed
from penstock.log.log_dir_owner import BOOT_ID
from penstock.log.partition_log import PartitionLog
from penstock.log.producer_state import ProducerState
from penstock.log.replay import heal_aborted, replay_readable
from penstock.log.snapshots import latest_state, remove_snapshots


def truncate_to(log: PartitionLog, offset: int) -> bool:
    """Truncate the log at `offset`. Call `LogStore.truncate`, which also checkpoints.

    A batch is removed whole, so the log may end before `offset`. (Kafka would end at it, and
    leave a gap that nothing fills.)
    """
    if offset >= log.end_offset:
        # No other broker knows an epoch in which this broker led without writing. If its entry
        # stayed, this log and its leader's would differ in it for ever.
        if log.epochs.truncate_from_end(log.end_offset):
            log.leader_epoch, log.unflushed.epochs_changed = log.epochs.latest, True
        return False
    if offset < log.segments.first.base_offset:
        truncate_fully_and_start_at(log, offset, 0)
        return True
    with log.log_dir:
        check_spare(log.files, log.log_dir.path / BOOT_ID)
    with log.log_dir, finished_or_failed():
        heal_aborted(log.files, log.segments, log.segments.since(offset)[:1])
        log.segments.truncate_to(offset)
        end_offset = log.segments.active.next_offset()
        _rewind(log, end_offset)
        former = log.producers
        log.producers = latest_state(
            log.files, log.path, up_to=end_offset, log_start_offset=log.log_start_offset
        )
        replay_readable(log.producers, log.segments, end_offset)
        log.producers.copy_append_times(former)
    log.log_start_offset = min(log.log_start_offset, end_offset)
    log.set_high_watermark(log.high_watermark)
    return True


def truncate_fully_and_start_at(log: PartitionLog, offset: int, now_ms: int) -> None:
    """Drop every record and start at `offset`, as a follower does that is too far behind."""
    with log.log_dir:
        check_spare(log.files, log.log_dir.path / BOOT_ID)
    with log.log_dir, finished_or_failed():
        _rewind(log, offset)
        log.segments.restart_at(offset, now_ms)
    log.epochs = LeaderEpochs()
    log.leader_epoch = None
    log.producers = ProducerState(offset)
    log.log_start_offset = offset
    log.set_high_watermark(offset)


def _rewind(log: PartitionLog, offset: int) -> None:
    log.generation += 1
    log.end_offset = offset
    log.unverified_gaps = []
    log.recovery_point = min(log.recovery_point, offset)
    log.epochs.truncate_from_end(offset)
    log.leader_epoch = log.epochs.latest
    log.unflushed.epochs_changed = True
    remove_snapshots(log.files, log.path, after=offset)
