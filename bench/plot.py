"""A small line plot as SVG: both axes logarithmic, one line for each broker."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 220, 56, 12, 28, 34
COLOURS = {"Penstock": "#1f6feb", "Kafka": "#b35900"}

Line = Sequence[tuple[float, float]]


def svg(title: str, lines: Mapping[str, Line]) -> str:
    points = [point for line in lines.values() for point in line if point[1] > 0]
    if not points:
        return ""
    across, up = (decades([point[at] for point in points]) for at in (0, 1))
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="11">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-weight="bold">{escape(title)}</text>',
    ]
    for power in range(up[0], up[1] + 1):
        y = placed(10**power, up, HEIGHT - BOTTOM, TOP)
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>',
            f'<text x="{LEFT - 4}" y="{y + 4}" text-anchor="end">{short(10**power)}</text>',
        ]
    for power in range(across[0], across[1] + 1):
        x = placed(10**power, across, LEFT, WIDTH - RIGHT)
        parts.append(
            f'<text x="{x}" y="{HEIGHT - 18}" text-anchor="middle">{short(10**power)}</text>'
        )
    for number, (name, line) in enumerate(lines.items()):
        spots = [
            (
                placed(x, across, LEFT, WIDTH - RIGHT),
                placed(y, up, HEIGHT - BOTTOM, TOP),
            )
            for x, y in line
            if y > 0
        ]
        colour = COLOURS.get(name, "black")
        path = " ".join(f"{x},{y}" for x, y in spots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in spots]
        parts.append(
            f'<text x="{LEFT + 90 * number}" y="{HEIGHT - 4}" fill="{colour}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the values."""
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def placed(value: float, powers: tuple[int, int], start: float, end: float) -> float:
    share = (log10(value) - powers[0]) / (powers[1] - powers[0])
    return round(start + share * (end - start), 1)


def short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
