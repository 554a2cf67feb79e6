"""Kafka's config providers: values stored elsewhere, such as `${file:/run/secrets:key}`.

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/run/secrets

`${name:path:key}` or `${name:key}` in the value of any setting is replaced once, at start. A
keystore password may later be altered to such a reference, and only the reference is stored. No
error quotes a value that was read.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from penstock.config.properties import properties
from penstock.errors import ConfigError

PREFIX: Final = "config.providers"
_KAFKA: Final = "org.apache.kafka.common.config.provider."
_COMMAND: Final = "penstock.CommandConfigProvider"
_VARIABLE: Final = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}]*?)\}")
_PARAMETER: Final = re.compile(rf"{re.escape(PREFIX)}\.([^.]+)\.(class|param\..+)")
_COMMAND_LIMIT_S: Final = 30

Provided = Callable[[str, str], str]
"""Resolves a setting's value, from its name and text."""
Provider = Callable[[str, str], str]
"""Returns the value of a key under a path, which may be empty."""


def check_reference(name: str, text: str) -> None:
    """Raise `ConfigError` unless the text is a reference: a secret must not be stored
    in the metadata.
    """
    if _VARIABLE.fullmatch(text) is None:
        raise ConfigError(
            f"{name} would lie in the metadata as it is: write a variable of one of the broker's "
            "config.providers, such as ${file:/run/secrets/keys.properties:password}"
        )


class Providers:
    """The providers that the settings declare, by name."""

    def __init__(self, settings: Mapping[str, str], environ: Mapping[str, str]) -> None:
        names = [each.strip() for each in settings.get(PREFIX, "").split(",") if each.strip()]
        for given in settings:
            match = _PARAMETER.fullmatch(given)
            if given != PREFIX and (match is None or match[1] not in names):
                raise ConfigError(f"{given} belongs to no provider that {PREFIX} names")
        self._by_name = {name: _provider(name, settings, environ) for name in names}

    def resolved(self, origin: str, name: str, text: str) -> str:
        """The setting's value; references to undeclared providers stay as they are."""

        def replacement(match: re.Match[str]) -> str:
            provider = self._by_name.get(match[1])
            if provider is None:
                return match[0]
            try:
                return provider(match[2] or "", match[3])
            except ConfigError as error:
                where = f"{origin}: " if origin else ""
                raise ConfigError(f"{where}{name}: {error}") from None

        return _VARIABLE.sub(replacement, text) if self._by_name else text


def provided(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """A client's settings with all references resolved."""
    own = {name: text for name, text in settings.items() if name.startswith(PREFIX)}
    providers = Providers(own, environ)
    return {
        name: providers.resolved("", name, text)
        for name, text in settings.items()
        if name not in own
    }


def _provider(name: str, settings: Mapping[str, str], environ: Mapping[str, str]) -> Provider:
    own = f"{PREFIX}.{name}."
    given = {
        key.removeprefix(own): text.strip() for key, text in settings.items() if key.startswith(own)
    }
    kind = given.pop("class", "")
    makers: dict[str, tuple[str, Callable[[str | None], Provider]]] = {
        f"{_KAFKA}FileConfigProvider": ("allowed.paths", _from_file),
        f"{_KAFKA}DirectoryConfigProvider": ("allowed.paths", _from_directory),
        f"{_KAFKA}EnvVarConfigProvider": ("allowlist.pattern", _from_environment(environ)),
        _COMMAND: ("allowed.commands", _from_command),
    }
    if kind not in makers:
        raise ConfigError(f"{own}class must be one of {', '.join(makers)}")
    parameter, make = makers[kind]
    for each in given:
        if each != f"param.{parameter}":
            raise ConfigError(f"{own}{each} is not known; this class has param.{parameter}")
    try:
        return make(given.get(f"param.{parameter}"))
    except ConfigError as error:
        raise ConfigError(f"{own}param.{parameter}: {error}") from None


def _from_file(allowed: str | None) -> Provider:
    roots = _roots(allowed)

    def value(path: str, key: str) -> str:
        text = _read(_checked(path, roots))
        found = {each.key: each.value for each in properties(text)}
        if key not in found:
            raise ConfigError(f"{path} has no {key!r}")
        return found[key]

    return value


def _from_directory(allowed: str | None) -> Provider:
    roots = _roots(allowed)

    def value(path: str, key: str) -> str:
        if not key or "/" in key or key in {".", ".."}:
            raise ConfigError(f"{key!r} is not the name of a file in {path}")
        return _read(_checked(f"{path}/{key}" if path else key, roots))

    return value


def _from_environment(environ: Mapping[str, str]) -> Callable[[str | None], Provider]:
    def make(allowed: str | None) -> Provider:
        try:
            pattern = None if allowed is None else re.compile(allowed)
        except re.error as error:
            raise ConfigError(f"{allowed!r} is not a pattern: {error}") from None

        def value(path: str, key: str) -> str:
            if path:
                raise ConfigError("a variable of the environment has no path")
            if pattern is not None and not pattern.fullmatch(key):
                raise ConfigError(f"the variable {key} does not match allowlist.pattern")
            if key not in environ:
                raise ConfigError(f"the environment has no {key}")
            return environ[key]

        return value

    return make


def _from_command(allowed: str | None) -> Provider:
    """`${name:/program:argument}` is the output of the program. Only listed programs are run."""
    programs = [each.strip() for each in (allowed or "").split(",") if each.strip()]
    if not programs or not all(Path(each).is_absolute() for each in programs):
        raise ConfigError("must list the programs that may be run, each by its whole path")

    def value(path: str, key: str) -> str:
        import subprocess  # late: it is slow to import, and rarely needed

        program, arguments = (path, [key]) if path else (key, [])
        if program not in programs:
            raise ConfigError(f"{program} is not in allowed.commands")
        try:
            done = subprocess.run(
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_COMMAND_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{program} did not end within {_COMMAND_LIMIT_S} s") from None
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "its output is not text"
            raise ConfigError(f"cannot run {program}: {reason}") from None
        if done.returncode:
            raise ConfigError(f"{program} ended with exit code {done.returncode}")
        return done.stdout.rstrip("\r\n")

    return value


def _roots(allowed: str | None) -> list[Path] | None:
    """The allowed paths; None: any path, as in Kafka without the parameter."""
    if allowed is None:
        return None
    roots = [Path(each.strip()) for each in allowed.split(",") if each.strip()]
    for each in roots:
        if not each.is_absolute() or not each.exists():
            raise ConfigError(f"{each} must be an absolute path that exists")
    return [each.resolve() for each in roots]


def _checked(path: str, roots: list[Path] | None) -> Path:
    # Resolved, so that neither `..` nor a symbolic link leads outside.
    resolved = Path(path).resolve()
    if roots is not None and not any(resolved.is_relative_to(each) for each in roots):
        raise ConfigError(f"{path} is not in allowed.paths")
    return resolved


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
