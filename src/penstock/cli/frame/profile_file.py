"""Client profiles: named sets of client settings, in the user's `profiles.toml`.

    current = "staging"

    [profiles.staging]
    "bootstrap.servers" = "kafka1:9092"

`classic` is built in: the defaults of older Kafka documentation, where today's differ.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from penstock.errors import ConfigError

CLASSIC: Final[Mapping[str, str]] = {
    "acks": "1",
    "enable.idempotence": "false",
    "linger.ms": "0",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "2000",
    "max.poll.interval.ms": "60000",
    "partition.assignment.strategy": "range",
}
BUILT_IN: Final[Mapping[str, Mapping[str, str]]] = {"classic": CLASSIC}


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of a user, and the current one."""

    current: str | None = None
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def names(self) -> list[str]:
        return sorted({*BUILT_IN, *self.own})

    def settings(self, name: str) -> Mapping[str, str]:
        if name in self.own:
            return self.own[name]
        if name in BUILT_IN:
            return BUILT_IN[name]
        raise ConfigError(f"profile {name!r} is unknown; there are {', '.join(self.names())}")

    def with_profile(self, name: str, settings: Mapping[str, str]) -> "Profiles":
        return replace(self, own={**self.own, name: dict(settings)})

    def without(self, name: str) -> "Profiles":
        if name not in self.own:
            self.settings(name)  # raises if it is unknown
            raise ConfigError(f"profile {name} is built in: it cannot be deleted")
        left = {each: settings for each, settings in self.own.items() if each != name}
        return Profiles(None if self.current == name else self.current, left)

    def using(self, name: str | None) -> "Profiles":
        if name is not None:
            self.settings(name)
        return replace(self, current=name)


def config_folder(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or "~", ".config")
    return Path(base).expanduser() / "penstock"


def profiles_path(environ: Mapping[str, str]) -> Path:
    return config_folder(environ) / "profiles.toml"


def read_profiles(path: Path) -> Profiles:
    import tomllib  # late: few users have such a file

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Profiles()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    current, profiles = found.get("current"), found.get("profiles", {})
    if not isinstance(current, str | None):
        raise ConfigError(f"{path}: current must be the name of a profile")
    if not isinstance(profiles, dict) or not all(
        isinstance(each, dict) for each in profiles.values()
    ):
        raise ConfigError(f"{path}: profiles must be tables: [profiles.NAME]")
    return Profiles(
        current,
        {name: dict(_settings(name, table, path)) for name, table in profiles.items()},
    )


def _settings(
    name: str, table: Mapping[str, object], path: Path, prefix: str = ""
) -> Mapping[str, str]:
    """The settings of a profile. TOML reads dotted names without quotes as nested tables."""
    found: dict[str, str] = {}
    for key, value in table.items():
        match value:
            case bool():
                found[prefix + key] = str(value).lower()
            case str() | int() | float():
                found[prefix + key] = str(value)
            case dict():
                found |= _settings(name, value, path, f"{prefix}{key}.")
            case _:
                raise ConfigError(f"{path}: {prefix}{key} of profile {name} must be a text")
    return found


def toml_text(profiles: Profiles) -> str:
    lines = [] if profiles.current is None else [f"current = {json.dumps(profiles.current)}", ""]
    for name, settings in sorted(profiles.own.items()):
        lines.append(f"[profiles.{json.dumps(name)}]")
        lines += [f"{json.dumps(key)} = {json.dumps(text)}" for key, text in settings.items()]
        lines.append("")
    return "\n".join(lines)


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Write the file readable only by the user: it may contain passwords."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(toml_text(profiles))
    new.replace(path)
