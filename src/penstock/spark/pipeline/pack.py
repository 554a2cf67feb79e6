"""Packs what tasks import into an archive, for executors that have only Spark and Python.

It holds penstock and its dependencies as installed here, so executors need the same version of
Python on the same kind of machine. They unpack it: extension modules cannot be imported from a zip
on the Python path.
"""

import re
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePath
from typing import Final

import penstock
from penstock.config.extra import install
from penstock.errors import ConfigError

UNPACKED: Final = "penstock-environment"
"""The folder into which executors unpack it, in their working directory."""
EXTRAS: Final = ("spark", "database")
SPARKS_OWN: Final = frozenset({"pyspark"})
"""Executors import the pyspark of their own Spark."""
NEEDED: Final = frozenset({"numpy", "pandas", "pyarrow"})
_COMPRESSED: Final = {".tar": False, ".tar.gz": True, ".tgz": True}
_LEVEL: Final = 3
"""Gzip level: the default takes six times as long to save a tenth of the size."""
_SOURCES: Final = frozenset(
    {".a", ".c", ".cc", ".f", ".f90", ".h", ".hpp", ".pth", ".pxd", ".pxi", ".pyi", ".pyx"}
)
_OWN: Final = frozenset({".py", ".pyc", ".so", ".typed"})
"""Includes `.pyc`, because each executor would take seconds to compile the modules."""
_REQUIREMENT: Final = re.compile(r"([\w.-]+)\s*(?:\[([^]]*)\])?")
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")

Requirements = Callable[[str], Iterable[str] | None]
"""The requirements in a distribution's metadata; None: not installed."""


def pack(archive: Path, include: Iterable[str] = ()) -> list[str]:
    """Write the archive; returns the distributions in it besides penstock."""
    compressed = [yes for end, yes in _COMPRESSED.items() if archive.name.endswith(end)]
    if not compressed:
        raise ConfigError(f"{archive}: name it {' or '.join(_COMPRESSED)}, which Spark unpacks")
    names = packed(include, _requirements)
    unfinished = archive.with_name(f".{archive.name}.unfinished")
    try:
        with _opened(unfinished, compressed=compressed[0]) as file:
            for path, name in [*_own_files(), *_installed_files(names)]:
                file.add(path, name, recursive=False)
        unfinished.replace(archive)
    except OSError as error:
        raise ConfigError(f"{archive}: cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return names


def packed(include: Iterable[str], requirements: Requirements) -> list[str]:
    """The distributions that belong in an archive, sorted."""
    chosen = list(include)
    for each in chosen:
        if requirements(_name_of(each)) is None:
            raise ConfigError(f"--include {each}: no distribution of this name is installed")
    found = closure([f"penstock[{','.join(EXTRAS)}]", *chosen], requirements) - {"penstock"}
    missing = NEEDED - found
    if missing:
        raise ConfigError(f"{min(missing)} is not installed: {install('spark')}")
    return sorted(found)


def closure(roots: Iterable[str], requirements: Requirements) -> set[str]:
    """The installed ones of these distributions and their requirements, without Spark's own.

    Only the extra of a requirement's conditions counts: the others, on platforms and versions,
    were decided when the environment was installed.
    """
    left, seen = [_parsed(each) for each in roots], set()
    found = set()
    while left:
        name, extras = left.pop()
        if (name, extras) in seen or name in SPARKS_OWN:
            continue
        seen.add((name, extras))
        required = requirements(name)
        if required is None:
            continue
        found.add(name)
        for each in required:
            conditions = set(_EXTRA.findall(each.partition(";")[2]))
            if not conditions or conditions & extras:
                left.append(_parsed(each))
    return found


def archive_settings(archive: Path, given: str | None = None) -> dict[str, str]:
    """Spark's settings that send the archive to executors; `given`: the user's archives."""
    if not archive.is_file():
        raise ConfigError(f"{archive}: no such file; `penstock pipeline pack {archive}` makes it")
    own = f"{archive.absolute().as_uri()}#{UNPACKED}"
    return {
        "spark.archives": f"{given},{own}" if given else own,
        "spark.executorEnv.PYTHONPATH": UNPACKED,
    }


def _opened(path: Path, *, compressed: bool) -> tarfile.TarFile:
    if compressed:
        return tarfile.open(path, "w:gz", compresslevel=_LEVEL)
    return tarfile.open(path, "w")


def _parsed(requirement: str) -> tuple[str, frozenset[str]]:
    found = _REQUIREMENT.match(requirement)
    assert found, requirement
    extras = (each.strip() for each in (found[2] or "").split(","))
    return _name_of(found[1]), frozenset(filter(None, extras))


def _name_of(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def _requirements(name: str) -> Iterable[str] | None:
    try:
        return distribution(name).requires or ()
    except PackageNotFoundError:
        return None


def _own_files() -> Iterator[tuple[Path, str]]:
    """The files of our own packages: an editable installation lists none."""
    folder = Path(penstock.__file__).parents[1]
    for library in sorted(folder.glob("penstock__mypyc.*.so")):
        yield library, library.name
    for package in [folder / "penstock", *sorted(folder.glob("pyspark_penstock*"))]:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix in _OWN and _is_needed(path.relative_to(folder)):
                yield path, path.relative_to(folder).as_posix()


def _installed_files(names: Iterable[str]) -> Iterator[tuple[Path, str]]:
    for name in names:
        found = distribution(name)
        for each in found.files or ():
            if _is_needed(each):
                path = Path(str(found.locate_file(each)))
                if path.is_file():
                    yield path, each.as_posix()


def _is_needed(file: PurePath) -> bool:
    """Leaves out files outside the packages, such as commands, and files for developers only."""
    if ".." in file.parts or file.suffix in _SOURCES:
        return False
    if file.suffix == ".pyc" and sys.implementation.cache_tag not in file.name:
        return False
    return "tests" not in file.parts[1:-1]
