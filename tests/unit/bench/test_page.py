"""The benchmarks page is generated from the figures and marks missed aims."""

from xml.etree import ElementTree as ET

from bench.claims import claims
from bench.page import sections
from bench.plot import svg
from bench.report import Report, rows_of
from bench.tables import MISSED, compared, grown, spread


def test_a_ratio_that_misses_its_aim_is_marked() -> None:
    report = Report()
    for name, value in (("Penstock", 6.0), ("Kafka", 10.0)):
        report.add("good", name, {"CPU": value}, {"CPU": "<= 0.6"})
        report.add("bad", name, {"CPU": value}, {"CPU": "<= 0.5"})
        report.add("slow", name, {"MB/s": value}, {"MB/s": ">= 1"})
        report.add("open", name, {"MB/s": value})
    good, bad, slow, without_aim = compared(rows_of(report.jsonable())).splitlines()[2:]
    assert good == "| good | CPU | 6.00 | 10.0 | 0.60 | ≤ 0.6 |"
    assert bad == f"| bad | CPU | 6.00 | 10.0 | 0.60 {MISSED} | ≤ 0.5 |"
    assert MISSED in slow
    assert MISSED not in without_aim


def test_the_cost_of_security_is_part_of_the_page() -> None:
    tls = Report()
    for name, value in (("Penstock", 6.0), ("Kafka", 10.0)):
        tls.add("fetch by TLS", name, {"CPU s per GB": value}, {"CPU s per GB": "<= 0.8"})
    about = {"date": "a day", "cores": 2, "memory GB": 8, "system": "", "python": "3.11"}
    measured = {
        "about": {**about, "optimised": True, "compiled": True, "load average": 0.1},
        "tls": tls.jsonable(),
        "figures": [["us by both", 1.5, "<= 2"], ["p99 by alone", 1.6, "<= 1.5"]],
    }
    text = "\n".join(sections({"security": measured}))
    assert "| fetch by TLS | CPU s per GB | 6.00 | 10.0 | 0.60 | ≤ 0.8 |" in text
    assert "| us by both | 1.50 | ≤ 2 |" in text
    assert f"| p99 by alone | 1.60 {MISSED} | ≤ 1.5 |" in text


def test_applications_and_the_registry_are_parts_of_the_page() -> None:
    about = {"date": "a day", "cores": 2, "memory GB": 8, "system": "", "python": "3.11"}
    of_machine = {**about, "optimised": True, "compiled": True, "load average": 0.1}
    for part, head in (("sdk", "## Applications"), ("registry", "## Schema registry")):
        measured = {"about": of_machine, "figures": [["good", 1.1, "<= 1.15"], ["bad", 9, "<= 5"]]}
        text = "\n".join(sections({part: measured}))
        assert head in text
        assert "| good | 1.10 | ≤ 1.15 |" in text
        assert f"| bad | 9.00 {MISSED} | ≤ 5 |" in text


def test_share_groups_are_a_part_of_the_page() -> None:
    about = {"date": "a day", "cores": 2, "memory GB": 8, "system": "", "python": "3.11"}
    report = Report()
    for name, value in (("Penstock", 6.0), ("Kafka", 10.0)):
        report.add("1 accepts one by one", name, {"p99 ms": value}, {"p99 ms": "<= 1.0"})
    measured = {
        "about": {**about, "optimised": True, "compiled": True, "load average": 0.1},
        "rounds": 3,
        "rows": report.jsonable(),
        "figures": [["late, ms", 60.0, "<= 50"]],
    }
    text = "\n".join(sections({"share": measured}))
    assert "## Share groups" in text
    assert "| 1 accepts one by one | p99 ms | 6.00 | 10.0 | 0.60 | ≤ 1.0 |" in text
    assert f"| late, ms | 60.0 {MISSED} | ≤ 50 |" in text


def test_samples_are_shown_with_their_spread() -> None:
    assert spread([3.0, 1.0, 2.0]) == "2.00 (1.00 to 3.00)"
    assert spread([]) == "-"


def test_a_size_that_was_not_reached_has_no_figure(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("bench.tables.FIGURES", tmp_path)
    points = [
        {"axis": "partitions", "subject": subject, "size": size, "figures": {"memory MB": size / 2}}
        for subject, sizes in (("Penstock", (100, 1000)), ("Kafka", (100,)))
        for size in sizes
    ]
    text = "\n".join(grown(points))
    assert "| memory MB | Penstock | 50.0 | 500 |" in text
    assert "| memory MB | Kafka | 50.0 | - |" in text
    assert (tmp_path / "partitions-memory-mb.svg").exists()


def test_a_plot_has_a_line_for_each_broker() -> None:
    drawn = ET.fromstring(svg("a < b", {"Penstock": [(1, 2), (10, 4)], "Kafka": [(1, 3)]}))
    assert len([each for each in drawn if each.tag.endswith("polyline")]) == 2
    assert svg("nothing", {"Penstock": [(1, 0)]}) == ""


def test_claims_without_a_measurement_say_so() -> None:
    assert all("not measured" in each[1] or "table" in each[1] for each in claims({}))
