"""Builds a release into dist/: source archive, pure wheel, a compiled wheel for each Python.

Everything is built from the last commit, twice, in two folders, and must be identical to the bit.
The wheels are built from the source archive, which shows that it is complete. dist/ also gets the
bill of materials and SHA256SUMS. Then each artefact is installed and tried (scripts/try_dist.py).

Arguments name the Pythons; the default is each of 3.11 to 3.14 that is on the path or under
~/.pyenv. A version that is not there gets no compiled wheel, and is named at the beginning and the
end. `--once` builds once, `--no-try` skips the installations.
"""

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from scripts.pins import hashed_requirements

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
MINORS = range(11, 15)
BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])('out'))"


def run(*words: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        words,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reported = done.stdout + done.stderr
        sys.exit(f"dist: {' '.join(map(str, words))} failed in {cwd}:\n{reported[-4000:]}")
    return done.stdout.strip()


def pythons(given: Sequence[str]) -> dict[int, Path]:
    """An interpreter for each minor version that can make a virtual environment and compile."""
    found: dict[int, Path] = {}
    for each in given:
        fits = fitting(each)
        if fits is None:
            sys.exit(
                f"dist: {each} cannot build a release: that needs Python 3.{MINORS[0]} to "
                f"3.{MINORS[-1]}, not free-threaded, with venv and headers (Python.h)"
            )
        found.setdefault(*fits)
    if not given:
        for minor in MINORS:
            on_path = shutil.which(f"python3.{minor}")
            under_pyenv = Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")
            for place in [*([on_path] if on_path else []), *map(str, under_pyenv)]:
                fits = fitting(place)
                if fits is not None and fits[0] == minor:
                    found.setdefault(*fits)
    if not found:
        sys.exit("dist: no Python that can build a release is on the path or under ~/.pyenv")
    return found


def fitting(python: str) -> tuple[int, Path] | None:
    """The minor version and the real path of `python` (it may be a wrapper); None if it is unfit.

    A free-threaded build is unfit: its compiled wheel would be another one, and mypyc's modules and
    those of the limited API are not tried there.
    """
    asks = (
        "import ensurepip, os, sys, sysconfig, venv;"
        "ok = sys.version_info[0] == 3 and sys.abiflags == '';"
        "ok = ok and os.path.exists(sysconfig.get_paths()['include'] + '/Python.h');"
        "print(sys.version_info[1], sys.executable) if ok else None"
    )
    try:
        done = subprocess.run([python, "-c", asks], capture_output=True, text=True, check=False)
    except OSError:
        return None
    minor, _, path = done.stdout.strip().partition(" ")
    return (int(minor), Path(path)) if path and int(minor) in MINORS else None


def missing(found: Iterable[int]) -> str:
    """A sentence about the versions without a compiled wheel; empty if there are none."""
    absent = [f"3.{minor}" for minor in MINORS if minor not in {*found}]
    if not absent:
        return ""
    return (
        f"dist: no compiled wheel for Python {', '.join(absent)}: no such interpreter was given "
        "or found with venv and headers on the path or under ~/.pyenv; pip takes the pure one"
    )


def build_environment(python: Path, folder: Path) -> Path:
    """A virtual environment with what `[build-system]` requires, pinned and hashed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    run(python, "-m", "venv", folder)
    wanted = folder / "build-requirements.txt"
    wanted.write_text(hashed_requirements(settings["build-system"]["requires"]))
    own = folder / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", wanted)
    return own


def built(folder: Path, commit: str, moment: str, builders: Sequence[Path]) -> Iterator[Path]:
    """Builds each artefact below `folder`."""
    source = folder / "source"
    source.mkdir(parents=True)
    run("git", "archive", "--output", folder / "source.tar", commit)
    _unpack(folder / "source.tar", source)
    environ = {name: text for name, text in os.environ.items() if not name.startswith("PENSTOCK_")}
    environ |= {"SOURCE_DATE_EPOCH": moment, "PYTHONHASHSEED": "0"}
    archive = _build(builders[0], "build_sdist", source, environ)
    normalize(archive, int(moment))
    yield archive
    for number, builder in enumerate([builders[0], *builders]):
        _unpack(archive, folder / f"wheel-{number}")
        (unpacked,) = (folder / f"wheel-{number}").iterdir()
        # Debug information would contain the folder's name.
        reported = {"CFLAGS": f"-g0 -ffile-prefix-map={unpacked}=."}
        given = environ | ({"PENSTOCK_PURE": "1"} if number == 0 else reported)
        wheel = _build(builder, "build_wheel", unpacked, given)
        with ZipFile(wheel) as packed:
            is_compiled = any("__mypyc" in name for name in packed.namelist())
        if is_compiled != (number > 0):
            sys.exit(f"dist: {wheel.name} {'is' if is_compiled else 'is not'} compiled")
        yield wheel


def _build(python: Path, what: str, source: Path, environ: dict[str, str]) -> Path:
    (source / "out").mkdir()
    reported = run(python, "-c", BUILD, what, cwd=source, env=environ)
    return source / "out" / reported.splitlines()[-1]


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    # Not by Python's tarfile, which differs before and after 3.11.4.
    run("tar", "-xf", archive, "-C", folder)


def normalize(archive: Path, moment: int) -> None:
    """Packs the archive again: sorted, with one timestamp, without owners."""
    packed = io.BytesIO()
    with (
        tarfile.open(archive) as found,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made,
    ):
        for each in sorted(found.getmembers(), key=lambda each: each.name):
            each.mtime, each.uid, each.gid, each.uname, each.gname = moment, 0, 0, "", ""
            each.mode = 0o755 if each.isdir() or each.mode & 0o100 else 0o644
            each.pax_headers = {}
            made.addfile(each, found.extractfile(each) if each.isfile() else None)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=moment) as zipped:
        zipped.write(packed.getvalue())


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def main() -> None:
    once, untried = "--once" in sys.argv, "--no-try" in sys.argv
    found = pythons([each for each in sys.argv[1:] if not each.startswith("--")])
    chosen, lacking = list(found.values()), missing(found)
    print(lacking, end="\n" if lacking else "", flush=True)
    os.umask(0o022)
    commit, moment = run("git", "log", "-1", "--format=%H %ct").split()
    if run("git", "status", "--porcelain"):
        print("dist: there are changes that are not committed; the last commit is built")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory(prefix="penstock-dist-") as name:
        folder = Path(name)
        builders = [
            build_environment(python, folder / f"venv-{number}")
            for number, python in enumerate(chosen)
        ]
        for each in built(folder / "first", commit, moment, builders):
            shutil.copy(each, DIST)
            print(f"dist: {each.name}", flush=True)
        if not once:
            for each in built(folder / "second", commit, moment, builders):
                if digest(each) != digest(DIST / each.name):
                    shutil.copy(each, DIST / f"{each.name}.second")
                    sys.exit(f"dist: a second build of {each.name} differs; it is kept beside it")
            print("dist: a second build, in another folder, is the same to the bit")
    environ = os.environ | {"SOURCE_DATE_EPOCH": moment}
    bill = run(sys.executable, "-m", "scripts.sbom", env=environ)
    (archive,) = DIST.glob("*.tar.gz")
    (DIST / archive.name.replace(".tar.gz", ".cdx.json")).write_text(bill + "\n")
    sums = "".join(f"{digest(each)}  {each.name}\n" for each in sorted(DIST.iterdir()))
    (DIST / "SHA256SUMS").write_text(sums)
    if not untried:
        trial = [sys.executable, "-m", "scripts.try_dist", *map(str, chosen)]
        tried = subprocess.run(trial, cwd=ROOT, check=False)
        if tried.returncode != 0:
            sys.exit(tried.returncode)
    print(lacking, end="\n" if lacking else "")


if __name__ == "__main__":
    main()
