"""Measures, and writes docs/benchmarks.md: python -m bench page [--parts broker,growth] [options]

Each part keeps its figures as JSON beside the page, with the machine and date they belong to, so
that one part can be measured again alone. `--parts ''` only writes the page.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain
from textwrap import fill
from typing import NamedTuple

from bench.claims import claims
from bench.report import rows_of
from bench.tables import (
    DOCS,
    FIGURES,
    MISSED,
    Part,
    compared,
    delayed,
    described,
    grown,
    shown,
    table,
)

HEAD = f"""# Benchmarks

`make bench` writes this page from its runs, which take an hour; one part alone is measured again by
`make bench ARGS="page --parts growth"`. Figures are medians, with the smallest and the largest
sample in brackets. A ratio is Penstock's figure divided by that of Apache Kafka 4.3.1 in the same
run, both with their default settings; {MISSED} marks a ratio that misses its aim. CPU is that of
the broker's processes.
"""


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench page")
    parser.add_argument("--parts", default=",".join(SECTIONS), help="what to measure")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(argv)
    FIGURES.mkdir(exist_ok=True)
    for part in filter(None, args.parts.split(",")):
        section = SECTIONS[part]
        module, *options = section.measured_by
        rounds = ["--rounds", str(args.rounds)] if section.has_rounds else []
        out = ["--out", str(FIGURES / f"{part}.json")]
        import_module(f"bench.{module}").main([*options, *rounds, *out])
    write()


class Section(NamedTuple):
    """One part of the page: the bench that measures it, and how its figures are shown."""

    title: str
    text: str
    measured_by: Sequence[str]
    """A module of `bench`, and options for it."""
    tables: Callable[[Part], Iterable[str]]
    has_rounds: bool = True


def ratios(*names: str) -> Callable[[Part], Iterator[str]]:
    """Shows one table beside Kafka, of the figures under all these names."""

    def tables(part: Part) -> Iterator[str]:
        yield compared([row for name in names for row in rows_of(part[name])])

    return tables


def own_figures(part: Part) -> Iterator[str]:
    yield table(("Figure", "Penstock", "Aim"), delayed(part["figures"]))


def ratios_and_own_figures(name: str) -> Callable[[Part], Iterator[str]]:
    return lambda part: chain(ratios(name)(part), own_figures(part))


def points_and_copies(part: Part) -> Iterator[str]:
    yield from ratios("points")(part)
    ways = part["zero copy"]
    yield table(list(ways[0]), [[shown(value) for value in way.values()] for way in ways])


CLIENTS = (
    "Kafka's own perf tools and librdkafka, on both cores beside the brokers; CPU is that "
    "of all brokers, peak memory that of one. In a virtual machine the first touch of a page "
    "counts as CPU too: samples differ by four times where the system had to get fresh memory "
    "for the log."
)
SECTIONS = {
    "broker": Section("Beside Apache Kafka", "", ["broker"], ratios("load", "start", "latency")),
    "clients": Section("Real clients, one broker", CLIENTS, ["clients"], ratios("rows")),
    "three": Section(
        "Real clients, three brokers, factor 3",
        CLIENTS,
        ["clients", "--factor", "3"],
        ratios("rows"),
    ),
    "transactions": Section(
        "Transactions",
        "franz-go writes transactions of 100 records, and copies a topic with the offsets in "
        "each transaction. At full speed commits wait for each other: compare them at a fixed "
        "rate.",
        ["transactions"],
        ratios("rows"),
    ),
    "spark": Section(
        "Spark reads",
        "Beside Spark's own connector, which stands under Kafka: one session on one Penstock "
        "broker. The connector is tuned, our source has its defaults.",
        ["spark"],
        ratios("rows"),
    ),
    "spark_write": Section(
        "Spark writes",
        "Beside Spark's own connector, which stands under Kafka: one session on one Penstock "
        "broker. Our copy is exactly-once, the connector's at-least-once.",
        ["spark_write"],
        ratios("rows"),
    ),
    "stalls": Section(
        "Waits for the event loop",
        "How long a request that costs nothing waits for its answer, beside works that may "
        "hold up a loop: producers with up to 100 batches a second each, in the last rows as many "
        "as they can. What an idle broker shows is the machine's own; the aim is that p99.9 stays "
        "within 5 ms of it.",
        ["stalls"],
        ratios("rows"),
    ),
    "points": Section(
        "What makes a log fast",
        "Each point switched on and off.",
        ["broker", "--points", "--select", "nothing else"],
        points_and_copies,
    ),
    "growth": Section(
        "Growth",
        "What a broker costs as it gets more of everything; brokers: figures of each, without "
        "the ZooKeeper that Penstock's share. A dash: not measured.",
        ["growth"],
        lambda part: grown(part["points"]),
        has_rounds=False,
    ),
    "delay": Section(
        "Delays",
        "The delay service of one broker, with its embedded store, four partitions and "
        "records of 100 B; how late records are is what a consumer sees.",
        ["delay"],
        own_figures,
        has_rounds=False,
    ),
    "security": Section(
        "Security",
        "What TLS costs the broker, written and read by librdkafka; what ACLs and quotas add "
        "to a small request; and how long an honest client waits beside hostile ones.",
        ["security"],
        ratios_and_own_figures("tls"),
    ),
    "sdk": Section(
        "Applications",
        "What `penstock.sdk` costs a client beside bare confluent-kafka that does the same "
        "(JSON of 100 B, keys, delivery reports), and how near to the ideal the parallel "
        "consumer comes.",
        ["sdk"],
        own_figures,
    ),
    "registry": Section(
        "Schema registry",
        "Look-ups while the registry knows 5,000 schemas, over one connection; what a request "
        "that costs nothing waits is the machine's own. And Avro values with schema ids, read "
        "for Spark.",
        ["registry"],
        own_figures,
    ),
    "share": Section(
        "Share groups",
        "Members over the bare protocol fetch and accept records of one partition. What locks "
        "take and how late records come again is Penstock's alone: a JVM does not tell, and "
        "Kafka has no back-off.",
        ["share"],
        ratios_and_own_figures("rows"),
    ),
}


def write() -> None:
    """Writes the page and its plots from the last figures of each part."""
    found = {part: FIGURES / f"{part}.json" for part in SECTIONS}
    parts = {part: json.loads(path.read_text()) for part, path in found.items() if path.exists()}
    text = "\n".join([HEAD, *sections(parts)])
    (DOCS / "benchmarks.md").write_text(text, encoding="utf-8")


def sections(parts: Mapping[str, Part]) -> Iterator[str]:
    for name, section in SECTIONS.items():
        part = parts.get(name)
        if part is None:
            continue
        yield f"## {section.title}\n"
        if section.text:
            yield fill(section.text, 100) + "\n"
        yield f'{described(part)}Again: `make bench ARGS="page --parts {name}"`.\n'
        yield from section.tables(part)
    yield "## Claims\n"
    yield table(("Claim", "Measured here", "Command"), claims(parts))
