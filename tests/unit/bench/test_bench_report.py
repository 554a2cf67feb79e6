"""Benchmark reports: medians, ratios, and every sample in the JSON."""

from bench.report import Report, aligned, rounded


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


def test_numbers_stand_to_the_right() -> None:
    assert aligned([("a", "b", "c"), ("x", "long", "100")]) == "a  b       c\nx  long  100"
