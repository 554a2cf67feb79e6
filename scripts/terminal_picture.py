"""Draws a command's output as a picture of a terminal: the one on README's first screen.

make run 2>/dev/null | python scripts/terminal_picture.py "make run" > docs/images/make-run.svg
"""

import sys
from html import escape

COLUMN, ROW, EDGE = 8.4, 19, 18
HARD_SPACE = "\N{NO-BREAK SPACE}"  # viewers merge ordinary spaces
TYPED, SAID = "#7ee787", "#e6edf3"
STYLE = "font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def picture(command: str, lines: list[str]) -> str:
    shown = [f"$ {command}", *lines]
    width = round(max(map(len, shown)) * COLUMN + 2 * EDGE)
    height = len(shown) * ROW + 2 * EDGE
    rows = "\n".join(
        f'<text x="{EDGE}" y="{EDGE + 14 + number * ROW}" fill="{TYPED if number == 0 else SAID}">'
        f"{escape(line.replace(' ', HARD_SPACE))}</text>"
        for number, line in enumerate(shown)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="What {escape(command)} prints">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n'
        f'<g style="{STYLE}">\n{rows}\n</g>\n</svg>\n'
    )


if __name__ == "__main__":
    sys.stdout.write(picture(sys.argv[1], sys.stdin.read().rstrip().splitlines()))
