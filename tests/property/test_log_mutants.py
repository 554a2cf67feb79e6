"""Rules of the log broken on purpose: the machines must notice, or nothing guards the rule."""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.log import follower_append, order
from penstock.log.compaction import cleaner
from penstock.log.compaction.compactor import Compactor
from penstock.log.compaction.job import SegmentSize
from penstock.log.compaction.offset_map import OffsetMap
from penstock.log.compaction.reading import whole_batches
from penstock.log.follower_append import OffsetsOutOfOrder
from penstock.log.loading import Loading
from penstock.log.log_dir import LogDir
from penstock.log.partition_log import PartitionLog
from penstock.log.segment_files import LOG, offset_path
from penstock.log.store import LogStore
from penstock.record.batch import CorruptBatch
from penstock.replication.partition import Partition
from property.test_compaction_machine import CompactionMachine

Patch = pytest.MonkeyPatch
pytestmark = [pytest.mark.pure, pytest.mark.slow]

NOTICED = (AssertionError, CorruptBatch, OffsetsOutOfOrder, struct.error)


def take_gaps_for_damage(patch: Patch) -> None:
    """Recovery accepts only consecutive offsets, unless the policy is compact."""
    check, load = order._check, Loading._load_dir
    compacted = [True]

    def contiguous(expected: Any, header: Any) -> None:
        check(expected, header)
        if header.base_offset > expected.next_offset and not compacted[0]:
            raise CorruptBatch("a gap")

    def load_dir(self: Loading, *args: Any) -> None:
        compacted[0] = "compact" in self._store.config_for("orders").cleanup_policy
        load(self, *args)

    patch.setattr(Loading, "_load_dir", load_dir)
    patch.setattr(order, "_check", contiguous)


def keep_the_settings_of_the_copy(patch: Patch) -> None:
    def replace_log(self: Partition, log: PartitionLog) -> None:
        self.log = log
        self.configure(log.config)

    patch.setattr(Partition, "replace_log", replace_log)


def refuse_a_first_batch_that_spans_the_end(patch: Patch) -> None:
    checked = follower_append.checked_batches

    def batches(view: memoryview, next_offset: int, **_: bool) -> Iterator[Any]:
        return checked(view, next_offset, is_empty=False)

    patch.setattr(follower_append, "checked_batches", batches)


def drop_the_newest(patch: Patch) -> None:
    newest = OffsetMap.supersedes

    def supersedes(self: OffsetMap, key: bytes, offset: int) -> bool:
        return newest(self, key, offset) or offset % 3 == 0

    patch.setattr(OffsetMap, "supersedes", supersedes)


def make_a_log_over_stale_checkpoints(patch: Patch) -> None:
    """A deleted log leaves its offsets to the next log of its name."""

    def remove_later(self: LogStore, log: PartitionLog) -> None:
        self.deleted.add(log.config.file_delete_delay_ms, log.path)

    patch.setattr(LogStore, "_remove_later", remove_later)


def keep_stale_checkpoints_at_the_start(patch: Patch) -> None:
    """A log deleted before a crash leaves its offsets to the next log of its name."""
    load = Loading._load_dir

    def load_dir(self: Loading, log_dir: LogDir, *args: Any) -> None:
        load(self, log_dir, *args)
        log_dir.stale_names.clear()

    patch.setattr(Loading, "_load_dir", load_dir)


def take_a_new_log_for_cleaned(patch: Patch) -> None:
    patch.setattr(Compactor, "forget", lambda *_: None)


def clean_batches_in_any_order(patch: Patch) -> None:
    """The offsets of batches are trusted, although no CRC covers them."""
    patch.setattr(cleaner._Cleaning, "_batches", batches_in_any_order)


def batches_in_any_order(self: Any, of: SegmentSize) -> Iterator[Any]:
    path = offset_path(self._directory, of.base_offset, LOG)
    return whole_batches(self._files, path, of.size_bytes, self._job.io_buffer_bytes)


MUTANTS = [
    make_a_log_over_stale_checkpoints,
    keep_stale_checkpoints_at_the_start,
    take_a_new_log_for_cleaned,
    take_gaps_for_damage,
    keep_the_settings_of_the_copy,
    refuse_a_first_batch_that_spans_the_end,
    drop_the_newest,
    clean_batches_in_any_order,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_a_broken_rule_is_noticed(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    with pytest.raises(NOTICED):
        run_state_machine_as_test(
            CompactionMachine,
            settings=settings(
                max_examples=600,
                stateful_step_count=40,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
