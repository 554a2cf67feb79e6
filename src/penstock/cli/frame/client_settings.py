"""Client settings of a command, by precedence: options, -X, file, environment, profile."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from penstock.cli.frame.profile_file import profiles_path, read_profiles
from penstock.errors import ConfigError

BOOTSTRAP: Final = "bootstrap.servers"
DEFAULT: Final = "127.0.0.1:9092"
PREFIX: Final = "PENSTOCK_CLIENT_"
_MEANING: Final = {"_": ".", "__": "_", "___": "-"}


def client_settings(
    *,
    bootstrap: str | None,
    directory: Path | None,
    pairs: Iterable[str],
    file: Path | None,
    profile: str | None,
    environ: Mapping[str, str],
) -> dict[str, str]:
    """All settings by name, always including `bootstrap.servers`."""
    if bootstrap is not None and directory is not None:
        raise ConfigError("--bootstrap-server and --dir exclude each other")
    settings = {
        BOOTSTRAP: DEFAULT,
        **_of_profile(profile, environ),
        **dict(from_environment(environ)),
        **({} if file is None else from_properties(file)),
        **dict(from_pairs(pairs)),
    }
    if any(name.startswith("config.providers") for name in settings):
        from penstock.config.providers import provided  # late: rarely needed

        settings = provided(settings, environ)
    if directory is not None:
        settings[BOOTSTRAP] = served_from(directory)
    elif bootstrap is not None:
        settings[BOOTSTRAP] = bootstrap
    if is_folder(settings[BOOTSTRAP]):
        settings[BOOTSTRAP] = served_from(Path(settings[BOOTSTRAP]))
    return settings


def is_folder(text: str) -> bool:
    """Whether the text names a folder. Hosts and ports have no slash; a folder in the working
    directory may be named without one.
    """
    return "/" in text or (":" not in text and Path(text).is_dir())


def served_from(directory: Path) -> str:
    """The brokers of a data directory, or of the directory of `penstock cluster start`."""
    from penstock.broker.startup.state_file import read_state, unfound_broker  # late: rarely needed

    if (directory / "cluster.json").is_file():
        from penstock.local.cluster import LocalCluster

        cluster = LocalCluster.find(directory)
        assert cluster is not None
        return cluster.plan.bootstrap
    state = read_state(directory)
    if state is None:
        raise ConfigError(unfound_broker(directory))
    return state.bootstrap


def from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """`PENSTOCK_CLIENT_SECURITY_PROTOCOL` is security.protocol, as in the Kafka images."""
    if environ.get("PENSTOCK_COMMAND_CONFIG"):
        yield from from_properties(Path(environ["PENSTOCK_COMMAND_CONFIG"])).items()
    for name, text in environ.items():
        if name.startswith(PREFIX):
            spelled = name.removeprefix(PREFIX).lower()
            yield re.sub("_{1,3}", lambda found: _MEANING[found[0]], spelled), text
    if environ.get("PENSTOCK_BOOTSTRAP"):
        yield BOOTSTRAP, environ["PENSTOCK_BOOTSTRAP"]


def from_properties(file: Path) -> dict[str, str]:
    from penstock.config.sources import from_file  # late: imports all broker settings

    return {each.name: each.text for each in from_file(file)}


def from_pairs(pairs: Iterable[str]) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError("-X must be name=value")
        yield name.strip(), text


def _of_profile(name: str | None, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The settings of the chosen or current profile. An empty PENSTOCK_PROFILE selects none."""
    path = profiles_path(environ)
    chosen = name or environ.get("PENSTOCK_PROFILE")
    if chosen == "":
        return {}
    if chosen is None and not os.path.exists(path):  # noqa: PTH110  a string costs less
        return {}
    profiles = read_profiles(path)
    chosen = chosen or profiles.current
    return {} if chosen is None else profiles.settings(chosen)
