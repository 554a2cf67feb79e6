"""A disk that is too small: a tmpfs of a few megabytes."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE_BYTES = 64 << 20


def unusable() -> str | None:
    """The reason why such a disk cannot be mounted here; None if it can."""
    return None if os.geteuid() == 0 else "only root may mount a file system"


@contextmanager
def small_disk(at: Path) -> Iterator[None]:
    at.mkdir(parents=True, exist_ok=True)
    options = f"size={SIZE_BYTES}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "penstock-faults", str(at)]
    subprocess.run(mount, check=True)
    try:
        yield
    finally:
        # Lazily, because a broker that is being killed may still have files open.
        subprocess.run(["umount", "--lazy", str(at)], check=True)


@contextmanager
def full(at: Path) -> Iterator[None]:
    """Fills the disk to its last byte."""
    ballast = at / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    try:
        yield
    finally:
        ballast.unlink()
