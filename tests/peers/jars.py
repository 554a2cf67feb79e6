"""The paths of the peers' jars: named sets, as `scripts/install-peers` fetched them."""

import os
import shutil
from pathlib import Path


class NotInstalledError(Exception):
    """Something that `scripts/install-peers` provides is missing."""

    def __init__(self, missing: str) -> None:
        super().__init__(f"{missing} is missing: run scripts/install-peers first")


def cache() -> Path:
    """The peers' folder in the user's cache; the installer computes the same path."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    own = os.environ.get("PENSTOCK_CACHE") or Path(user, "penstock")
    return Path(own, "peers")


def folder(jars: str) -> Path:
    """The folder of a set such as `kafka-4.3.1`, with all its dependencies."""
    found = cache() / "jars" / jars
    # The installer writes this file last.
    if not (found / "coordinates").exists():
        raise NotInstalledError(f"the jar set {jars}")
    return found


def classpath(jars: str) -> str:
    return f"{folder(jars)}/*"


def jar(jars: str, artifact: str) -> Path:
    """One jar of a set, such as `kafka-clients` of `clients-4.4.0`."""
    found = [path for path in folder(jars).glob(f"{artifact}-*.jar") if _is(path, artifact)]
    if len(found) != 1:
        raise NotInstalledError(f"{artifact} in the jar set {jars}")
    return found[0]


def program(name: str) -> str:
    """The path of an installed command such as `java`."""
    found = shutil.which(name)
    if found is None:
        raise NotInstalledError(name)
    return found


def _is(path: Path, artifact: str) -> bool:
    # `kafka-group-coordinator-4.3.1` is one, `kafka-group-coordinator-api-4.3.1` is another.
    return path.name.removeprefix(f"{artifact}-")[0].isdigit()
