"""The tables of the benchmarks page: medians with their spread, and marks on missed aims."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.plot import svg
from bench.report import NAMES, Row, is_missed, rounded

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = DOCS / "benchmarks"
MISSED = "🔴"
Part = Mapping[str, Any]
"""The figures of one part of the page, as its bench wrote them."""


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


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
