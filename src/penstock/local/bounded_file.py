"""A separate program: copies its input to a file of bounded size.

For the output of servers that do not rotate it. It runs without the rest of Penstock, to take
little memory, and ends with the process whose output it reads.
"""

import os
import sys
from pathlib import Path

BOUND_BYTES = 16 << 20
OLD = ".1"


def copy(source: int, path: Path, bound_bytes: int) -> None:
    """Copy until the source ends. The file and its predecessor take up to twice the bound."""
    file = path.open("ab", buffering=0)
    while data := os.read(source, min(bound_bytes, 1 << 16)):
        try:
            if file.tell() + len(data) > bound_bytes:
                path.replace(f"{path}{OLD}")
                file.close()
                file = path.open("ab", buffering=0)
            file.write(data)
        except OSError:
            continue  # the disk is full: drop the data, so that the writer does not block
    file.close()


if __name__ == "__main__":
    copy(0, Path(sys.argv[1]), BOUND_BYTES)
