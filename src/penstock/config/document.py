"""Reads settings from a TOML or YAML document; nested keys are joined by dots."""

from collections.abc import Iterator

from penstock.config.value import render
from penstock.config.yaml_keys import yaml_problem
from penstock.errors import ConfigError


def texts(data: bytes, suffix: str, file: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every leaf; lists are joined by commas."""
    root = _toml(data, file) if suffix == ".toml" else _yaml(data, file)
    if root is None:
        return
    if not isinstance(root, dict):
        raise ConfigError(f"{file}: contains a {type(root).__name__} instead of settings")
    seen = set()
    for name, text in _leaves(root, "", file):
        if name in seen:  # such as `log.dirs`, and `dirs` under `log`
            raise ConfigError(f"{file}: {name} is set twice")
        seen.add(name)
        yield name, text


def _leaves(tree: dict[object, object], prefix: str, file: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        match value:
            case dict():
                yield from _leaves(value, f"{name}.", file)
            case list() if all(isinstance(item, str | int | float) for item in value):
                yield name, ",".join(_scalar(item) for item in value)
            case str() | int() | float():
                yield name, _scalar(value)
            case _:
                kind = "null" if value is None else type(value).__name__
                raise ConfigError(f"{file}: {name} is a {kind}, must be a text, number or list")


def _scalar(value: str | float) -> str:
    return render(value) or ""


def _toml(data: bytes, file: str) -> object:
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{file}: {problem}") from None


def _yaml(data: bytes, file: str) -> object:
    import msgspec

    try:
        if problem := yaml_problem(data):
            raise ConfigError(f"{file}: {problem}")
        return msgspec.yaml.decode(data)
    except ImportError:
        raise ConfigError(
            f"{file}: YAML needs the package pyyaml, which is not installed; TOML needs none"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {' '.join(str(error).split())}") from None
