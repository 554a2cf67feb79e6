"""The versions that constraints.txt pins, for hashed installations and the bill of materials."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"


def pinned(text: str | None = None) -> dict[str, str]:
    """The lines of each package by name: version, markers and hashes."""
    text = CONSTRAINTS.read_text(encoding="utf-8") if text is None else text
    blocks = re.findall(r"(?m)^[A-Za-z0-9].*(?:\n +--hash.*)*", text)
    found: dict[str, str] = {}
    for block in blocks:  # a package may be pinned twice, under different markers
        name = canonicalize_name(re.split(r"[=<>\[; ]", block, maxsplit=1)[0])
        found[name] = f"{found[name]}\n{block}" if name in found else block
    return found


def version_of(block: str) -> str:
    (version, *_) = re.findall(r"==([^ ;\\]+)", block)
    return str(version)


def closure(requirements: Iterable[str]) -> set[str]:
    """The canonical names of these requirements and of all that they require in turn.

    Packages that are not installed here are left out: they are for other systems or Pythons.
    """
    return {canonicalize_name(each.name) for each in _needed(requirements, set())}


def _needed(requirements: Iterable[str], seen: set[str]) -> Iterator[Distribution]:
    for each in map(Requirement, requirements):
        if each.marker is not None and not any(
            each.marker.evaluate({"extra": extra}) for extra in ("", *each.extras)
        ):
            continue
        try:
            found = distribution(each.name)
        except PackageNotFoundError:
            continue
        key = f"{found.name}{sorted(each.extras)}"
        if key not in seen:
            seen.add(key)
            yield found
            yield from _needed(_required(found, each.extras), seen)


def _required(found: Distribution, extras: set[str]) -> Iterator[str]:
    for text in found.requires or []:
        each = Requirement(text)
        if each.marker is None or any(
            each.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            each.marker = None
            yield str(each)


def hashed_requirements(requirements: Iterable[str]) -> str:
    """A file for `pip install --require-hashes -r`: these requirements and their dependencies."""
    known = pinned()
    return "\n".join(known[name] for name in sorted(closure(requirements)) if name in known) + "\n"


def container_files() -> dict[Path, str]:
    """The container image's requirement files; its build cannot ask packages it does not have."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, folder = settings["project"], ROOT / "deploy" / "container"
    shipped = [*project["dependencies"], *project["optional-dependencies"]["cluster"]]
    return {
        folder / "requirements.txt": hashed_requirements(shipped),
        folder / "build-requirements.txt": hashed_requirements(
            settings["build-system"]["requires"]
        ),
    }


if __name__ == "__main__":
    for path, text in container_files().items():
        path.write_text(text, encoding="utf-8")
