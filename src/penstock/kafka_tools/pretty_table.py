"""Prints a table like `kafka-transactions.sh`: columns as wide as their widest cell."""

from collections.abc import Iterable, Sequence


def print_columns(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(header))]
    for line in lines:
        cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        print("\t".join(cells) + "\t")
