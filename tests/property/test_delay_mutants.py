"""The delay machine notices rules that are broken on purpose."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.config.backoff import StepBackoff
from penstock.config.delay_route import Route
from penstock.record.record import Record
from penstock.retry import delivery, due_records, partition, policy
from penstock.retry.due_records import PlannedDeliveries
from penstock.retry.policy import Verdict, WaitUntil, judge
from penstock.retry.progress import Progress
from penstock.retry.route_mover import RouteMover
from penstock.types import Offset, TopicPartition
from property.test_delay_machine import DelayMachine, RetryMachine

pytestmark = pytest.mark.pure


def early(record: Record, at: TopicPartition, route: Route, now_ms: int) -> Verdict:
    verdict = judge(record, at, route, now_ms)
    return (
        replace(verdict, due_ms=verdict.due_ms - 2000)
        if isinstance(verdict, WaitUntil)
        else verdict
    )


def all_that_is_due(*args: Any, **named: Any) -> list[delivery.EntryDelivery]:
    """Deliver everything that is due, cancelled or not."""
    owned, due, records, waiting, now_ms = args
    planned = whole(owned, due, records, (), now_ms, **named)
    for each in planned:
        if each.entry.origin in waiting:
            each.also_cancelled = each.entry.origin
    return planned


whole = delivery.deliveries


commit = RouteMover._commit


async def cleared_before_commit(
    self: RouteMover, planned: Sequence[PlannedDeliveries], member: Any
) -> None:
    for owned, done in planned:
        await self._index.remove(owned.key, [each.entry.offset for each in done])
    await commit(self, planned, member)


async def without_progress(self: RouteMover, planned: Sequence[PlannedDeliveries], _: Any) -> None:
    for owned, done in planned:
        for each in done:
            owned.progress.stage(each.entry.offset, each.outcome)
    await self._producer.commit()


MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "due early": (partition, "judge", early),
    "the floor passes what waits": (
        Progress,
        "staged_floor",
        lambda self: Offset(self.read_to),
    ),
    "a cancelled record arrives": (due_records, "deliveries", all_that_is_due),
}
OF_KILLS: dict[str, tuple[str, tuple[Any, str, Callable[..., Any]]]] = {
    "the index is cleared before the commit": (
        "before commit",
        (RouteMover, "_commit", cleared_before_commit),
    ),
    "the progress is not in the transaction": (
        "after commit",
        (RouteMover, "_commit", without_progress),
    ),
    "progress is forgotten": ("after commit", (Progress, "is_done", lambda *_: False)),
}
"""At which point a kill of the service reveals each mutant."""
OF_RETRIES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a retry does not back off": (StepBackoff, "delay_ms", lambda *_: 10),
    "attempts are not counted": (policy, "_whole", lambda *_: 0),
}


@pytest.mark.parametrize("name", [*MUTANTS, *OF_RETRIES])
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, mutant = (MUTANTS | OF_RETRIES)[name]
    machine = RetryMachine if name in OF_RETRIES else DelayMachine
    monkeypatch.setattr(owner, attribute, mutant)
    quick = settings(
        max_examples=300,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=quick)


def killed(when: str) -> None:
    """One record, and a service that is killed around the commit that delivers it."""
    machine = DelayMachine()
    machine.delay(10)
    machine.read(1)
    machine.wait(20)
    machine.transaction(when)
    machine.nothing_is_early_or_twice()
    machine.teardown()
    machine.nothing_is_early_or_twice()


@pytest.mark.parametrize("name", OF_KILLS)
def test_a_broken_rule_about_kills_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    when, (owner, attribute, mutant) = OF_KILLS[name]
    killed(when)
    monkeypatch.setattr(owner, attribute, mutant)
    with pytest.raises(AssertionError):
        killed(when)
