"""Measures, and writes docs/benchmarks.md: python -m bench page [--parts broker,growth] [options]

Each part keeps its figures as JSON beside the page, with the machine and date they belong to, so
that one part can be measured again alone. `--parts ''` only writes the page.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.plot import svg
from bench.report import NAMES, Row, is_missed, rounded, rows_of

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = DOCS / "benchmarks"
PARTS = {
    "broker": ["broker"],
    "clients": ["clients"],
    "three": ["clients", "--factor", "3"],
    "points": ["broker", "--points", "--select", "nothing else"],
    "stalls": ["stalls"],
    "growth": ["growth"],
    "delay": ["delay"],
    "security": ["security"],
    "sdk": ["sdk"],
    "registry": ["registry"],
    "share": ["share"],
}
"""The command that measures each part."""
ONCE = ("growth", "delay")
MISSED = "🔴"
Part = Mapping[str, Any]

HEAD = f"""# Benchmarks

`make bench` writes this page from its runs, which take an hour; one part alone is measured again by
`make bench ARGS="page --parts growth"`. Figures are medians, with the smallest and the largest
sample in brackets. A ratio is Penstock's figure divided by that of Apache Kafka 4.3.1 in the same
run, both with their default settings; {MISSED} marks a ratio that misses its aim. CPU is that of
the broker's processes.
"""


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench page")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(argv)
    FIGURES.mkdir(exist_ok=True)
    for part in filter(None, args.parts.split(",")):
        module, *options = PARTS[part]
        rounds = [] if part in ONCE else ["--rounds", str(args.rounds)]
        out = ["--out", str(FIGURES / f"{part}.json")]
        import_module(f"bench.{module}").main([*options, *rounds, *out])
    write()


def write() -> None:
    """Writes the page and its plots from the last figures of each part."""
    parts = {
        part: json.loads(path.read_text()) if path.exists() else None
        for part in PARTS
        for path in [FIGURES / f"{part}.json"]
    }
    text = "\n".join([HEAD, *sections(parts)])
    (DOCS / "benchmarks.md").write_text(text, encoding="utf-8")


def sections(parts: Mapping[str, Part | None]) -> Iterator[str]:
    broker, clients, three, points, stalls, growth, delay, security, sdk, registry, share = (
        parts[part] for part in PARTS
    )
    if broker:
        yield "## Beside Apache Kafka\n"
        yield described(broker)
        rows = [*rows_of(broker["load"]), *rows_of(broker["start"]), *rows_of(broker["latency"])]
        yield compared(rows)
    for part, brokers in ((clients, "one broker"), (three, "three brokers, factor 3")):
        if part:
            yield f"## Real clients, {brokers}\n"
            yield (
                "Kafka's own perf tools and librdkafka, on both cores beside the brokers "
                "(`make bench ARGS=clients`);\nCPU is that of all brokers, peak memory that of "
                "one.\n"
            )
            yield described(part)
            yield compared(rows_of(part["rows"]))
    if stalls:
        yield "## Waits for the event loop\n"
        yield (
            "How long a request that costs nothing waits for its answer, beside works that may "
            "hold up a\nloop (`make bench ARGS=stalls`). What an idle broker shows is the "
            "machine's own; the aim is that\np99.9 stays within 5 ms of it.\n"
        )
        yield described(stalls)
        yield compared(rows_of(stalls["waits"]))
    if points:
        yield "## What makes a log fast\n"
        yield 'Each point switched on and off (`make bench ARGS="broker --points"`).\n'
        yield described(points)
        yield compared(rows_of(points["points"]))
        ways = points["zero copy"]
        yield table(list(ways[0]), [[shown(value) for value in way.values()] for way in ways])
    if growth:
        yield "## Growth\n"
        yield (
            "What a broker costs as it gets more of everything (`make bench ARGS=growth`); "
            "brokers: figures\nof each, without the ZooKeeper that Penstock's share. A dash: "
            "not measured.\n"
        )
        yield described(growth)
        yield from grown(growth["points"])
    if delay:
        yield "## Delays\n"
        yield (
            "The delay service of one broker, with its embedded store, four partitions and records "
            "of 100 B\n(`make bench ARGS=delay`); how late records are is what a consumer sees.\n"
        )
        yield described(delay)
        yield table(("Figure", "Penstock", "Aim"), delayed(delay["figures"]))
    if security:
        yield "## Security\n"
        yield (
            "What TLS costs the broker, written and read by librdkafka; what ACLs and quotas add "
            "to a small\nrequest; and how long an honest client waits beside hostile ones "
            "(`make bench ARGS=security`).\n"
        )
        yield described(security)
        yield compared(rows_of(security["tls"]))
        yield table(("Figure", "Penstock", "Aim"), delayed(security["figures"]))
    if sdk:
        yield "## Applications\n"
        yield (
            "What `penstock.sdk` costs a client beside bare confluent-kafka that does the same "
            "(JSON of 100 B, keys,\ndelivery reports), and how near to the ideal the parallel "
            "consumer comes (`make bench ARGS=sdk`).\n"
        )
        yield described(sdk)
        yield table(("Figure", "Penstock", "Aim"), delayed(sdk["figures"]))
    if registry:
        yield "## Schema registry\n"
        yield (
            "Look-ups while the registry knows 5,000 schemas, over one connection; what a request "
            "that costs nothing\nwaits is the machine's own. And Avro values with schema ids, read "
            "for Spark (`make bench ARGS=registry`).\n"
        )
        yield described(registry)
        yield table(("Figure", "Penstock", "Aim"), delayed(registry["figures"]))
    if share:
        yield "## Share groups\n"
        yield (
            "Members over the bare protocol fetch and accept records of one partition "
            "(`make bench ARGS=share`). What locks\ntake and how late records come again is "
            "Penstock's alone: a JVM does not tell, and Kafka has no back-off.\n"
        )
        yield described(share)
        yield compared(rows_of(share["rows"]))
        yield table(("Figure", "Penstock", "Aim"), delayed(share["figures"]))
    yield "## Claims\n"
    yield table(("Claim", "Measured here", "Command"), claims(broker, points, growth))


def delayed(figures: Sequence[tuple[str, float, str]]) -> list[tuple[str, str, str]]:
    return [
        (
            figure,
            f"{rounded(value)} {MISSED * is_missed(value, aim)}".strip(),
            aim.replace("<=", "≤").replace(">=", "≥"),
        )
        for figure, value, aim in figures
    ]


def described(part: Part) -> str:
    about = part["about"]
    rounds = f", rounds: {part['rounds']}" if "rounds" in part else ""
    built = "with" if about["optimised"] else "**without**"
    form = "compiled" if about["compiled"] else "as Python source"
    lines = [
        f"Measured on {about['date']}{rounds}; {about['cores']} cores, {about['memory GB']} GB,",
        f"{about['system']}, CPython {about['python']} built {built} optimisations,",
        f"Penstock {form}.",
    ]
    if not about["optimised"]:
        lines.append("An optimised Python takes 6 to 13 % less CPU.")
    if about["load average"] > 1:
        lines.append(
            f"**Other work ran on this machine** (load average {about['load average']}): "
            "look at ratios and at CPU, not at rates and waits."
        )
    if "note" in part:
        lines.append(part["note"])
    return "\n".join(lines) + "\n"


def compared(rows: Sequence[Row]) -> str:
    return table(
        ("Workload", "Figure", *NAMES, "Ratio", "Aim"),
        [
            (
                row.workload,
                row.figure,
                *(spread(row.samples.get(name, ())) for name in NAMES),
                f"{'' if row.ratio is None else f'{row.ratio:.2f}'} "
                f"{MISSED * row.is_missed}".strip(),
                row.aim.replace("<=", "≤").replace(">=", "≥"),
            )
            for row in rows
        ],
    )


def shown(value: object) -> str:
    return rounded(value) if isinstance(value, float) else str(value)


def spread(samples: Sequence[float]) -> str:
    if not samples:
        return "-"
    middle = rounded(Row("", "", samples={"": list(samples)}).median(""))
    if len(samples) == 1:
        return middle
    return f"{middle} ({rounded(min(samples))} to {rounded(max(samples))})"


def grown(points: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for axis in dict.fromkeys(each["axis"] for each in points):
        own = [each for each in points if each["axis"] == axis]
        figures = list(dict.fromkeys(name for each in own for name in each["figures"]))
        sizes = sorted({each["size"] for each in own})
        values = {
            (each["subject"], each["size"], name): value
            for each in own
            for name, value in each["figures"].items()
        }
        yield f"### {axis.capitalize()}\n"
        yield table(
            ("Figure", "Broker", *(f"{size:,}" for size in sizes)),
            [
                (name, subject, *(rounded(values.get((subject, size, name))) for size in sizes))
                for name in figures
                for subject in NAMES
                if any((subject, size, name) in values for size in sizes)
            ],
        )
        yield from plotted(axis, figures, sizes, values)


def plotted(
    axis: str,
    figures: Sequence[str],
    sizes: Sequence[int],
    values: Mapping[tuple[str, int, str], float],
) -> Iterator[str]:
    links = []
    for figure in figures:
        lines = {
            subject: [
                (size, values[subject, size, figure])
                for size in sizes
                if (subject, size, figure) in values
            ]
            for subject in NAMES
        }
        drawn = svg(f"{figure} by {axis}", {name: line for name, line in lines.items() if line})
        if drawn and not figure.startswith("idle"):
            name = f"{axis}-{figure}".replace(" ", "-").replace("/", "-per-").lower() + ".svg"
            (FIGURES / name).write_text(drawn, encoding="utf-8")
            links.append(f"![{figure} by {axis}](benchmarks/{name})")
    if links:
        yield "\n".join(links) + "\n"


def claims(
    broker: Part | None, points: Part | None, growth: Part | None
) -> list[tuple[str, str, str]]:
    """Claims about log-based brokers, with what the runs above show."""
    found = Found(broker or {}, points or {}, growth or {})
    return [
        (
            "A plain server takes 100,000 messages a second",
            found.point("batching: on, 64 KB", "records/s") + " of 1 KB from one connection",
            command("broker --points"),
        ),
        (
            "A broker takes 200 GB an hour (56 MB/s)",
            found.load("produce 64 KB of 1,000 B records", "MB/s") + " MB/s",
            command("broker"),
        ),
        (
            "Larger batches, more partitions and more producers are faster (A032)",
            "; ".join(
                f"{name} {found.point(name, 'records/s')} records/s"
                for name in (
                    "batch size: 1 KB",
                    "batch size: 1 MB",
                    "partitions: 1",
                    "partitions: 64",
                    "producers: 1",
                    "producers: 16",
                )
            ),
            command("broker --points"),
        ),
        (
            "Throughput is best with records of about 10 KB and falls above (A158)",
            "MB/s by record size: " + found.growth("record bytes", "MB/s"),
            command("growth --select record"),
        ),
        (
            "Latency is worse than a message queue's (A169): no such queue beside it here",
            f"end to end p50 {found.latency('p50 us')} us, p99 {found.latency('p99 us')} us",
            command("broker"),
        ),
        (
            "Batches, compression, sequential writes and zero copy each make it fast (A170)",
            "the tables of points: rows with batching, compression, append, sendfile",
            command("broker --points"),
        ),
        (
            "Readers that keep pace need no disk (A178)",
            found.disk("fetched"),
            command("broker --points"),
        ),
        (
            "Larger segments are cheaper; sequential disk beats random memory (A179)",
            f"CPU us per record {found.point('segments: of 1 GB', 'CPU us per record')} with 1 GB "
            f"segments, {found.point('segments: of 1 MB', 'CPU us per record')} with 1 MB; "
            + found.disk("sequential"),
            command("broker --points"),
        ),
    ]


def command(arguments: str) -> str:
    return f'`make bench ARGS="{arguments}"`'


class Found:
    """Penstock's figures of the last runs, as text."""

    def __init__(self, broker: Part, points: Part, growth: Part) -> None:
        self._broker, self._points, self._growth = broker, points, growth

    def load(self, workload: str, figure: str) -> str:
        return self._median(self._broker.get("load", ()), workload, figure)

    def point(self, workload: str, figure: str) -> str:
        return self._median(self._points.get("points", ()), workload, figure)

    def latency(self, figure: str) -> str:
        table = self._broker.get("latency", ())
        return self._median(table, "end to end, 100 records/s", figure)

    def disk(self, word: str) -> str:
        lines = [line for line in self._points.get("disk", ()) if word in line]
        return "; ".join(lines) or "not measured"

    def growth(self, axis: str, figure: str) -> str:
        points = [
            f"{each['size']:,} B {rounded(each['figures'][figure])}"
            for each in self._growth.get("points", ())
            if each["axis"] == axis and each["subject"] == "Penstock"
        ]
        return ", ".join(points) or "not measured"

    def _median(self, rows: Sequence[Mapping[str, Any]], workload: str, figure: str) -> str:
        for row in rows_of(rows):
            if (row.workload, row.figure) == (workload, figure):
                return rounded(row.median("Penstock"))
        return "not measured"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
