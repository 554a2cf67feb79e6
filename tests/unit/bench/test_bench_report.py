"""Benchmark reports: medians, ratios, and every sample in the JSON."""

from bench.report import Report, aligned, rounded
from bench.stalls import AIMS, P99_9, beside


def test_a_row_compares_medians() -> None:
    report = Report()
    for ours, theirs in ((9, 30), (10, 20), (50, 10)):
        report.add("produce", "Penstock", {"CPU": ours})
        report.add("produce", "Kafka", {"CPU": theirs})
    (row,) = report.rows
    assert row.median("Penstock") == 10
    assert row.ratio == 0.5


def test_a_broker_that_did_not_run_leaves_the_ratio_open() -> None:
    report = Report()
    report.add("fetch", "Kafka", {"MB/s": 1234.5}, {"MB/s": ">= 1"})
    assert report.rows[0].ratio is None
    assert report.text().splitlines()[1].split() == ["fetch", "MB/s", "-", "1,234", ">=", "1"]


def test_every_sample_is_in_the_json() -> None:
    report = Report()
    report.add("fetch", "Kafka", {"MB/s": 1.0})
    report.add("fetch", "Kafka", {"MB/s": 3.0})
    (row,) = report.jsonable()
    assert row["samples"] == {"Kafka": [1.0, 3.0]}
    assert row["medians"] == {"Penstock": None, "Kafka": 2.0}


def test_numbers_keep_three_digits() -> None:
    assert [rounded(each) for each in (None, 0.1234, 1.234, 12.34, 123456.7)] == [
        "-",
        "0.123",
        "1.23",
        "12.3",
        "123,457",
    ]


def test_numbers_are_right_aligned() -> None:
    assert aligned([("a", "b", "c"), ("x", "long", "100")]) == "a  b       c\nx  long  100"


def test_an_aim_with_a_unit_applies_to_our_own_figure() -> None:
    """Long waits of Kafka do not excuse ours."""
    report = Report()
    for ours, workload in ((4.0, "kept"), (35.5, "missed")):
        report.add(workload, "Penstock", {"over idle": ours}, {"over idle": "<= 5 ms"})
        report.add(workload, "Kafka", {"over idle": 40.0}, {"over idle": "<= 5 ms"})
    kept, missed = report.rows
    assert (kept.is_missed, missed.is_missed) == (False, True)
    assert missed.ratio is None
    assert "missed" in report.text().splitlines()[-1].split("<=")[0]


def test_waits_during_background_work_are_compared_with_those_of_an_idle_broker() -> None:
    report = Report()
    report.add("work", "Penstock", beside({P99_9: 3.0}, {P99_9: 9.0}), AIMS)
    _, over = report.rows
    assert over.median("Penstock") == 6.0
    assert over.is_missed
