"""Chooses between the compiled hot modules and their sources, and checks that both agree.

mypyc compiles the modules that pyproject.toml names; their sources run without it, too. With
PENSTOCK_PURE=1 in the environment the sources run, whatever was built: for debuggers and coverage,
and for tests that replace functions. A build in place, as `make setup` does it, leaves the
checksums of its sources. A module that was edited since would silently run its old code, so the
import is refused.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

SUMS = f"compiled{EXTENSION_SUFFIXES[0]}.sums"
_LIBRARY = "penstock__mypyc"


def is_compiled() -> bool:
    """Whether the hot modules run compiled: all of them, since they are in one library."""
    return not is_pure() and find_spec(_LIBRARY) is not None


def is_pure() -> bool:
    """Whether the environment demands the sources, whatever was built."""
    return os.environ.get("PENSTOCK_PURE") == "1"


def choose(folder: Path) -> None:
    """Import the sources if the environment demands it; else check that they are what was built."""
    if is_pure():
        sys.meta_path.insert(0, Sources())
        return
    changed = edited(folder)
    if changed:
        raise ImportError(
            f"penstock was compiled before {', '.join(changed)} changed: "
            "run `make setup`, or set PENSTOCK_PURE=1 to run the sources"
        )


def edited(folder: Path) -> list[str]:
    """The sources that have changed since they were compiled."""
    sums = folder / SUMS
    try:
        lines = sums.read_text().splitlines()
        read_ns = sums.stat().st_mtime_ns
    except FileNotFoundError:
        return []
    return [
        path for known, path in map(str.split, lines) if _differs(folder / path, known, read_ns)
    ]


def _differs(source: Path, checksum: str, read_ns: int) -> bool:
    try:
        if source.stat().st_mtime_ns < read_ns:
            return False
        from hashlib import sha256  # rarely needed, and start-up is to be short

        return sha256(source.read_bytes()).hexdigest() != checksum
    except FileNotFoundError:
        return True


def docstring(module: ModuleType) -> str:
    """The docstring of a module; a compiled one has none, so it is read from the source."""
    if module.__doc__ is None and module.__file__ is not None:
        import ast  # rarely needed, and start-up is to be short

        compiled = Path(module.__file__)
        source = compiled.with_name(compiled.name.partition(".")[0] + ".py")
        return ast.get_docstring(ast.parse(source.read_text())) or "" if source.exists() else ""
    return module.__doc__ or ""


class Sources:
    """An import finder for the sources of our modules; it ignores compiled ones."""

    def __init__(self) -> None:
        self._finders: dict[str, FileFinder] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not name.startswith("penstock."):
            return None
        for folder in path:
            if folder not in self._finders:
                self._finders[folder] = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
            spec = self._finders[folder].find_spec(name)
            if spec is not None:
                return spec
        raise ModuleNotFoundError(f"PENSTOCK_PURE=1: no source of {name}", name=name)
