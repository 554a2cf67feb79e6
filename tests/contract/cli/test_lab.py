"""Every scenario of `penstock lab` runs and shows the figures that it is named for.

Scenarios check themselves as they run; these tests check their output.
"""

from collections.abc import Callable

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.local.lab import scenarios
from penstock.local.lab.narration import NarratedStep, Narrator
from penstock.local.lab.replicas import BY_EPOCH, BY_HIGH_WATERMARK
from penstock.local.lab.truncation import replicas

Ends = list[tuple[int | None, int | None]]


def reported(name: str) -> list[NarratedStep]:
    narrator = Narrator(lambda _line: None)
    scenarios.SCENARIOS[name](narrator)
    return narrator.steps


def ends(step: NarratedStep) -> Ends:
    """The log end offset and high watermark of each replica."""
    return [(each.log_end_offset, each.high_watermark) for each in step.replicas]


def in_sync(step: NarratedStep) -> list[int]:
    return [each.broker for each in step.replicas if each.in_sync]


@pytest.mark.row("A067", "A068", "A069", "A071")
@pytest.mark.peer
def test_consumers_see_what_all_in_sync_replicas_have() -> None:
    nine, ninth, _, five, fifth, ten, tenth, waiting, acked = map(ends, with_all(reported("hw")))
    assert nine == [(6, 6)] * 3
    assert ninth == [(9, 6), (9, 6), (6, None)]
    assert five == [(5, 4), (5, 4), (4, None)]
    assert fifth == [(5, 5)] * 3
    assert ten == [(10, 3), (5, None), (3, None)]
    assert tenth == [(10, 10)] * 3
    assert waiting[0] == (2, 1)
    assert acked == [(3, 3)] * 3


def with_all(steps: list[NarratedStep]) -> list[NarratedStep]:
    assert all(in_sync(each) == [0, 1, 2] for each in steps), "a follower that hangs is in sync"
    return steps


@pytest.mark.row("A060", "A061", "A166")
@pytest.mark.peer
def test_a_lagging_replica_leaves_the_isr_and_returns() -> None:
    whole, hanging, out, alone, back = reported("isr")
    assert [in_sync(each) for each in (whole, hanging, out, alone, back)] == [
        [0, 1, 2], [0, 1, 2], [0, 1], [0], [0, 1, 2],
    ]  # fmt: skip
    assert ends(hanging)[0] == (4, 3)
    assert ends(out)[0] == (4, 4)
    assert ends(alone)[0] == (5, 4), "under min.insync.replicas nothing is committed"
    assert ends(back) == [(5, 5)] * 3


@pytest.mark.row("A070")
def test_a_follower_learns_of_the_high_watermark_one_fetch_late() -> None:
    assert [ends(each) for each in reported("fetch")] == [
        [(1, 0), (0, 0)],
        [(1, 0), (1, 0)],
        [(1, 1), (1, 0)],
        [(1, 1), (1, 1)],
    ]


@pytest.mark.row("A072", "A073")
def test_truncation_by_high_watermark_loses_what_epochs_keep() -> None:
    steps = reported("truncation")
    old, new = steps[3], steps[7]
    assert [each.records for each in old.replicas] == [("a@0",), ("a@0",)]
    assert [each.records for each in new.replicas] == [("a@0", "b@0")] * 2
    acknowledged = steps[0]
    assert ends(acknowledged)[0] == (2, 2)


@pytest.mark.row("A074")
def test_logs_diverge_without_epochs_and_do_not_with_them() -> None:
    steps = reported("divergence")
    old, new = steps[4], steps[9]
    assert [each.records for each in old.replicas] == [("a@0", "b@0"), ("a@0", "c@1")]
    assert [each.records for each in new.replicas] == [("a@0", "c@1")] * 2


@pytest.mark.parametrize("rule", [BY_HIGH_WATERMARK, BY_EPOCH], ids=lambda rule: rule.name)
def test_a_scenario_with_the_wrong_outcome_is_an_error(
    rule: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scenarios' own checks can fail: with the truncation rules swapped, each reports it."""
    other = BY_EPOCH if rule is BY_HIGH_WATERMARK else BY_HIGH_WATERMARK
    monkeypatch.setattr(
        "penstock.local.lab.truncation.replicas", swapped(replicas, {id(rule): other})
    )
    ran = CliRunner().invoke(main, ["lab", "truncation"])
    assert ran.exit_code == 1
    assert "should be" in ran.output


def swapped(make: Callable[..., object], others: dict[int, object]) -> Callable[[object], object]:
    return lambda rule: make(others.get(id(rule), rule))


@pytest.mark.row("A024", "A073")
@pytest.mark.peer
def test_a_former_leader_truncates_records_that_its_epoch_did_not_commit() -> None:
    first, alone, another, healed = reported("epoch")
    assert ends(first) == [(3, 3)] * 2
    assert ends(alone) == [(5, 3), (3, None)]
    assert ends(another)[1] == (4, 4)
    assert ends(healed) == [(4, 4)] * 2


@pytest.mark.row("A075", "A078")
@pytest.mark.peer
def test_an_unclean_leader_loses_committed_records_and_a_clean_election_waits() -> None:
    steps = reported("unclean")
    assert [each.role for each in steps[1].replicas] == ["follower"], "nobody leads"
    assert ends(steps[2]) == [(2, 2)] * 2
    assert ends(steps[-1]) == [(2, 2)] * 2


def test_each_scenario_says_what_it_is_about() -> None:
    shown = CliRunner().invoke(main, ["lab", "--help"]).output
    for name in scenarios.SCENARIOS:
        assert f"  {name}" in shown
    assert "needs nothing else" in CliRunner().invoke(main, ["lab", "fetch", "--help"]).output
