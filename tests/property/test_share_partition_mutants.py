"""Rules of share-partitions broken on purpose: the state machine must notice each."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.broker.share import share_partition
from penstock.broker.share.errors import InvalidRecordState
from penstock.broker.share.in_flight import InFlightRun, InFlightRuns
from penstock.broker.share.key_order import KeyOrder
from penstock.broker.share.share_partition import DueLetter, ShareLimits, SharePartition
from penstock.coordinator.share.state import FINAL, RecordState
from penstock.wire.enums import AcknowledgeType
from property import test_share_partition_machine as machine

Patch = pytest.MonkeyPatch
pytestmark = [pytest.mark.slow]

NOTICED = (AssertionError, ValueError, pytest.fail.Exception, InvalidRecordState)


def believe_a_write_that_failed(patch: Patch) -> None:
    end_write = SharePartition.end_write
    patch.setattr(SharePartition, "end_write", lambda self, _=None: end_write(self, None))


def hand_out_for_ever(patch: Patch) -> None:
    decided = share_partition._decided

    def without_limit(run: Any, kind: Any, limits: Any) -> Any:
        return decided(run, kind, limits._replace(delivery_count=99))

    patch.setattr(share_partition, "_decided", without_limit)


def count_the_deliveries_of_a_lost_connection(patch: Patch) -> None:
    def release(self: SharePartition, member: str) -> bool:
        held = [run for run in self.runs if run.is_held and run.owner == member]
        for run in held:
            run.become(RecordState.AVAILABLE, run.count)
        return bool(held)

    patch.setattr(SharePartition, "release", release)


def let_anybody_acknowledge(patch: Patch) -> None:
    patch.setattr(SharePartition, "_check_held", lambda *_: None)


def decide_twice(patch: Patch) -> None:
    is_held = property(lambda run: run.state is RecordState.ACQUIRED)
    patch.setattr(InFlightRun, "is_held", is_held)


def hand_out_what_is_being_decided(patch: Patch) -> None:
    become = InFlightRun.become

    def at_once(self: SharePartition, member: str, given: Any, limits: Any, now_ms: int) -> Any:
        transition = acknowledge(self, member, given, limits, now_ms)
        for run in self.runs:
            if run.transition is transition and run.next is not None:
                become(run, *run.next)
        return transition

    acknowledge = SharePartition.acknowledge
    patch.setattr(SharePartition, "acknowledge", at_once)


def begin_after_what_is_not_decided(patch: Patch) -> None:
    def start(self: SharePartition) -> tuple[int, int]:
        return max([self.start_offset, *(r.last + 1 for r in self.runs if r.state.is_final)]), 0

    patch.setattr(SharePartition, "_start_after_write", start)


def write_twice_at_a_time(patch: Patch) -> None:
    begin_write = SharePartition.begin_write

    def begin(self: SharePartition) -> Any:
        writing, self._writing = self._writing, None
        found = begin_write(self)
        self._writing = writing if found is None else self._writing
        return found

    patch.setattr(SharePartition, "begin_write", begin)


def take_what_was_not_written_for_finished(patch: Patch) -> None:
    skip = SharePartition._skip_to
    patch.setattr(
        SharePartition, "_skip_to", lambda self, at, _: skip(self, at, RecordState.ARCHIVED)
    )


def hand_out_gaps(patch: Patch) -> None:
    skip = SharePartition._skip_to
    patch.setattr(
        SharePartition, "_skip_to", lambda self, at, _: skip(self, at, RecordState.AVAILABLE)
    )


def keep_bad_records_among_others(patch: Patch) -> None:
    patch.setattr(share_partition, "_portion", lambda *_: None)
    patch.setattr(SharePartition, "_is_isolated", lambda *_: False)


def keep_deleted_records(patch: Patch) -> None:
    patch.setattr(InFlightRuns, "drop_before", lambda *_: None)


def renew_nothing(patch: Patch) -> None:
    acknowledge = SharePartition.acknowledge

    def without(self: SharePartition, member: str, given: Any, *more: Any) -> Any:
        for each in given:
            self._check_held(member, each) if each.last >= self.start_offset else None
        kept = [each for each in given if each.type is not AcknowledgeType.RENEW]
        return acknowledge(self, member, kept, *more)

    patch.setattr(SharePartition, "acknowledge", without)


def lock_for_ever(patch: Patch) -> None:
    patch.setattr(SharePartition, "expire", lambda *_: False)


def lock_without_limit(patch: Patch) -> None:
    def fetch_offset(self: SharePartition, *_: Any) -> int:
        return next((r.first for r in self.runs if r.is_available), self.next_offset)

    patch.setattr(SharePartition, "fetch_offset", fetch_offset)


def exceed_a_strict_limit(patch: Patch) -> None:
    acquire = SharePartition.acquire

    def acquire_more(self: SharePartition, wanted: Any, *more: Any) -> Any:
        return acquire(self, wanted._replace(is_strict=False), *more)

    patch.setattr(SharePartition, "acquire", acquire_more)


def store_a_delivery_under_way(patch: Patch) -> None:
    as_batch = InFlightRun.as_batch

    def counted(self: InFlightRun) -> Any:
        is_held = self.next is None and self.state is RecordState.ACQUIRED
        return as_batch(self)._replace(deliveries=self.count) if is_held else as_batch(self)

    patch.setattr(InFlightRun, "as_batch", counted)


def redeliver_at_once(patch: Patch) -> None:
    patch.setattr(ShareLimits, "backoff_after", lambda *_: 0)


def back_off_without_limit(patch: Patch) -> None:
    patch.setattr(ShareLimits, "backoff_after", lambda self, n: self.backoff_ms << max(n - 1, 0))


def forget_the_pause_of_a_new_leader(patch: Patch) -> None:
    patch.setattr(SharePartition, "back_off", lambda *_: None)


def hand_out_a_key_twice(patch: Patch) -> None:
    patch.setattr(KeyOrder, "is_first", lambda *_: True)


def wait_for_finished_records(patch: Patch) -> None:
    is_first = KeyOrder.is_first
    patch.setattr(KeyOrder, "is_first", lambda self, at, _: is_first(self, at, lambda _: False))


def take_unknown_keys_for_none(patch: Patch) -> None:
    patch.setattr(SharePartition, "first_unknown_key", None)


def write_letters_before_that_is_decided(patch: Patch) -> None:
    def take(self: SharePartition, _: Any) -> list[DueLetter]:
        found = [r for r in self.runs if r.state is RecordState.ARCHIVING and not r.is_sent]
        for run in found:
            run.is_sent = True
        return [DueLetter(o, r.count, False) for r in found for o in range(r.first, r.last + 1)]

    patch.setattr(SharePartition, "take_letters", take)


def forget_letters_that_a_leader_owed(patch: Patch) -> None:
    patch.setattr(share_partition, "KEPT", FINAL)


def finish_records_without_their_letters(patch: Patch) -> None:
    def write(self: SharePartition, _: Any) -> list[DueLetter]:
        for run in self.runs:
            if run.state is RecordState.ARCHIVING:
                run.become(RecordState.ARCHIVED, run.count)
        return []

    patch.setattr(SharePartition, "take_letters", write)


def make_letters_of_gaps(patch: Patch) -> None:
    decided = share_partition._decided

    def as_rejected(run: Any, kind: Any, limits: Any) -> Any:
        return decided(run, AcknowledgeType.REJECT if kind is AcknowledgeType.GAP else kind, limits)

    patch.setattr(share_partition, "_decided", as_rejected)


MUTANTS: list[Callable[[Patch], None]] = [
    believe_a_write_that_failed,
    hand_out_for_ever,
    count_the_deliveries_of_a_lost_connection,
    let_anybody_acknowledge,
    decide_twice,
    hand_out_what_is_being_decided,
    begin_after_what_is_not_decided,
    write_twice_at_a_time,
    take_what_was_not_written_for_finished,
    hand_out_gaps,
    keep_bad_records_among_others,
    keep_deleted_records,
    renew_nothing,
    lock_for_ever,
    lock_without_limit,
    exceed_a_strict_limit,
    store_a_delivery_under_way,
    redeliver_at_once,
    back_off_without_limit,
    forget_the_pause_of_a_new_leader,
    hand_out_a_key_twice,
    wait_for_finished_records,
    take_unknown_keys_for_none,
    write_letters_before_that_is_decided,
    forget_letters_that_a_leader_owed,
    finish_records_without_their_letters,
    make_letters_of_gaps,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_the_machine_notices_a_broken_rule(
    mutant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(NOTICED):
        run_state_machine_as_test(
            machine.SharePartitionMachine,
            settings=settings(
                max_examples=1000,
                stateful_step_count=40,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
