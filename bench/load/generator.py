"""Compiles the load generator in this folder, once per version of its source, and runs it."""

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from peers.jars import cache

SOURCES = Path(__file__).parent
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra")


class LoadError(Exception):
    """The generator cannot be built, or the broker did not serve what it asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The result of one run of the generator; latencies are those of single requests."""

    requests: int
    bytes: int
    seconds: float
    p50_us: float
    p99_us: float


def load(workload: str, port: int, topic: str, **options: object) -> Load:
    """Puts one workload on the broker at `port`; options are those of `load.c`, by name."""
    arguments = [f"{name}={value}" for name, value in options.items()]
    done = subprocess.run(
        [built(), workload, f"port={port}", f"topic={topic}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LoadError(done.stderr.strip() or f"load ended with {done.returncode}")
    return msgspec.json.decode(done.stdout, type=Load)


def built() -> Path:
    """The program, compiled unless the cache has it for this source."""
    files = sorted(SOURCES.glob("*.[ch]"))
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    program = cache() / "load" / f"load-{key}"
    if program.exists():
        return program
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise LoadError("the load generator is written in C: install a compiler named cc")
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        part = Path(folder, "load")
        sources = [file for file in files if file.suffix == ".c"]
        done = subprocess.run(
            [compiler, *FLAGS, "-o", part, *sources], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LoadError(f"the load generator does not compile\n{done.stderr}")
        part.rename(program)
    return program
