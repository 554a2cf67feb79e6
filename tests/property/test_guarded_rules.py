"""Rules of the log and the broker broken on purpose: the test that guards each must fail.

`test_log_mutants.py` has the rules that a state machine covers by itself.
"""

import gc
import inspect
import logging
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.broker.net.session import Session
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.errors import KafkaError, StorageError
from penstock.log.batch_search import BatchSearch
from penstock.log.compaction.compactor import Compactor
from penstock.log.compaction.reading import whole_batches
from penstock.log.files import storage_error
from penstock.log.partition_log import PartitionLog
from penstock.log.segment import RollRules
from penstock.log.store import LogStore
from penstock.log.upkeep import Upkeep
from penstock.record.compression import Codec
from penstock.record.recompress import recompressed
from support.groups.coordinator_stage import Stage
from unit.broker import test_session
from unit.coordinator import test_offset_removal
from unit.log import test_file_limit, test_log_flush, test_log_store, test_partition_log
from unit.log.compaction import test_compactor, test_reading
from unit.record import test_recompression

pytestmark = pytest.mark.pure

NOTICED = (
    AssertionError,
    ExceptionGroup,
    KafkaError,
    StorageError,
    SystemExit,
    pytest.fail.Exception,
)


class Mutant(NamedTuple):
    """A rule in `function`, how it is broken, and the test that guards it."""

    function: Any
    rule: str
    broken: str
    guard: Callable[[Path], object]


def dirty_log(folder: Path) -> PartitionLog:
    log = test_compactor.open_log(folder)
    for pairs in ((("a", "1"), ("b", "1")), (("a", "2"),), (("b", "2"),), (("a", "3"),)):
        test_compactor.append(log, *pairs)
        if pairs[0] in {("a", "2"), ("b", "2")}:
            log.roll(test_compactor.NOW)
    log.flush()
    return log


def end_of_move(failing: str) -> None:
    test_log_store.test_a_disk_that_fails_at_the_end_of_a_move_does_not_take_the_other_offline(
        failing
    )


MUTANTS = {
    "a cleaner that is off cleans": Mutant(
        getattr(Compactor.threads, "fget", None),
        " if settings.log_cleaner_enable else 0",
        "",
        lambda folder: (
            test_compactor.test_without_a_cleaner_nothing_is_compacted_and_threads_share_what_there_is(
                dirty_log(folder)
            )
        ),
    ),
    "a batch may grow past max.message.bytes when it is compressed anew": Mutant(
        recompressed,
        "size_bytes > max_message_bytes",
        "False",
        lambda _: test_recompression.test_a_batch_that_is_too_large_after_recompression_is_rejected(
            Codec.NONE
        ),
    ),
    "a failed source takes the destination of a move offline": Mutant(
        LogStore.promote_future,
        "with current.log_dir:\n        self.rename(current, DirectoryRole.DELETE)",
        "with future.log_dir, current.log_dir:\n        self.rename(current, DirectoryRole.DELETE)",
        lambda _: end_of_move("d0"),
    ),
    "a log whose copy cannot take over stays renamed": Mutant(
        LogStore.promote_future,
        "self.rename(current, DirectoryRole.CURRENT)",
        "pass",
        lambda _: end_of_move("d1"),
    ),
    "a damaged log stops the cleaning of others": Mutant(
        Compactor._contained,
        "except KafkaError as error:",
        "except ZeroDivisionError as error:",
        lambda folder: test_compactor.test_a_damaged_header_in_one_log_does_not_stop_the_others(
            dirty_log(folder), folder, 16, "no batch"
        ),
    ),
    "a deleted log leaves its name uncleanable": Mutant(
        Compactor._mark_uncleanable,
        "if not log.segments.home.is_gone:",
        "if True:",
        lambda folder: test_compactor.test_a_new_log_does_not_inherit_the_error_of_a_deleted_one(
            dirty_log(folder)
        ),
    ),
    "a full disk leaves a log uncleanable": Mutant(
        Compactor._failed,
        "if failed.is_damage:",
        "if True:",
        lambda folder: test_compactor.test_a_log_that_met_a_full_disk_is_tried_again(
            dirty_log(folder)
        ),
    ),
    "the cleaner takes a segment that shrank for whole": Mutant(
        whole_batches,
        "if len(chunk) < asked or (at",
        "if len(chunk) < asked:\n            return\n        if (at",
        lambda _: test_reading.test_a_segment_that_is_truncated_while_it_is_read_is_reported(
            5, 7, 2
        ),
    ),
    "max.compaction.lag.ms rolls no segment": Mutant(
        getattr(RollRules.of, "__func__", None),  # None if the function is compiled
        "min(segment_ms, config.max_compaction_lag_ms)",
        "segment_ms",
        lambda _: test_partition_log.test_a_compacted_log_rolls_before_its_records_are_overdue(
            "compact"
        ),
    ),
    "intervals count by the wall clock": Mutant(
        Upkeep.tick,
        "config = self._config()",
        "monotonic_ms, config = now_ms, self._config()",
        lambda _: test_log_flush.test_a_wall_clock_that_is_set_back_stops_no_interval(),
    ),
    "tombstones too many for one batch are refused for ever": Mutant(
        CoordinatorRuntime._append,
        "if not result.may_split or len(raw) == 1:",
        "if True:",
        lambda _: test_offset_removal.test_tombstones_too_many_for_one_batch_become_several(
            Stage(), "delete group"
        ),
    ),
    "bytes that are no frame behind a request that waits are met again and again": Mutant(
        Session.on_readable,
        "(OSError, ProtocolError)",
        "OSError",
        lambda _: test_session.test_a_bad_frame_behind_a_request_that_waits_ends_the_connection(),
    ),
    "a lack of file descriptors is a failed disk": Mutant(
        storage_error,
        "cause.errno in {errno.EMFILE, errno.ENFILE}",
        "False",
        lambda _: test_file_limit.test_a_full_file_table_is_not_a_failed_disk(),
    ),
    "pipelined requests are all answered into memory": Mutant(
        Session.pump,
        "not left or self._out_bytes > SEND_BYTES",
        "False",
        lambda _: (
            test_session.test_pipelined_requests_of_a_client_that_does_not_read_are_not_all_answered()
        ),
    ),
    "batches out of order are served": Mutant(
        BatchSearch.find,
        "if base_offset <= before:",
        "if False:",
        lambda _: (
            test_partition_log.test_readers_of_a_damaged_offset_get_an_error_and_others_are_served(
                6, 5
            )
        ),
    ),
}


class EndsTheLoop(logging.Handler):
    """An exception in a callback would be logged, and the callback called again, for ever."""

    def emit(self, record: logging.LogRecord) -> None:
        raise SystemExit(record.getMessage())


def broken(function: Any, rule: str, broken: str) -> Any:
    """The code of the function, with part of its source replaced."""
    _, begin, rest = textwrap.dedent(inspect.getsource(function)).partition("def ")
    source = begin + rest  # without its decorators
    assert source.count(rule) == 1, f"the rule has moved from {function.__qualname__}"
    made: dict[str, Any] = {}
    exec(source.replace(rule, broken), dict(function.__globals__), made)
    return made[function.__name__].__code__


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, rule, instead, guard = MUTANTS[name]
    function = inspect.unwrap(function)
    ends_the_loop = EndsTheLoop()
    logging.getLogger("asyncio").addHandler(ends_the_loop)
    try:
        monkeypatch.setattr(function, "__code__", broken(function, rule, instead))
        with pytest.raises(NOTICED):
            guard(tmp_path)
    finally:
        logging.getLogger("asyncio").removeHandler(ends_the_loop)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()  # a test that fails leaves its sockets open
