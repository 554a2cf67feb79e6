"""Reads a broker's settings from --set, environment, file and profile, by precedence.

In this package, only this module and `providers` read files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from penstock.config.broker import (
    BrokerConfig,
    broker_config,
    broker_settings,
    declared_setting,
)
from penstock.config.environment import setting_names
from penstock.config.listener import ListenerConfig
from penstock.config.listener_security import listener_of
from penstock.config.profile import profile as profile_texts
from penstock.config.properties import properties
from penstock.config.setting import SettingError, parse
from penstock.config.unknown import unknown
from penstock.config.unserved_security import is_done_anyway, is_of_clients, is_refused
from penstock.config.value import render
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path  # slow to import; callers have it anyway

    from penstock.config.providers import Provided


PROVIDERS = "config.providers"


class SettingSource(IntEnum):
    """The source of a value; the greater number wins."""

    DEFAULT = 0
    PROFILE = 1
    FILE = 2
    ENVIRONMENT = 3
    COMMAND_LINE = 4


class Given(NamedTuple):
    """A text that was set, and its origin: `server.properties:12`, a variable, `--set`."""

    name: str
    text: str
    source: SettingSource
    origin: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """A broker's effective settings, their sources, and warnings."""

    config: BrokerConfig
    given: Mapping[str, Given]
    warnings: tuple[str, ...]
    provided: "Provided | None" = None
    """Resolves references to config providers; None: there are no providers."""

    def texts(self) -> dict[str, str]:
        """The static texts, to be parsed again below dynamic ones."""
        return {name: each.text for name, each in self.given.items()}

    def source(self, name: str) -> SettingSource:
        return self.given[name].source if name in self.given else SettingSource.DEFAULT

    def text(self, name: str) -> str | None:
        """A setting's effective text, as in DescribeConfigs."""
        setting = broker_settings()[name]
        return render(
            parse(setting, self.given[name].text) if name in self.given else setting.default
        )


def resolve(
    *,
    defaults: Mapping[str, str] | None = None,
    file: "Path | None" = None,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
    pairs: Sequence[str] = (),
    strict: bool = False,
) -> Resolved:
    """Read all sources, check every name and value, and apply their precedence.

    `defaults` replace the declared defaults.
    """
    layers = [
        *(Given(name, text, SettingSource.DEFAULT, "") for name, text in (defaults or {}).items()),
        *(from_profile(profile) if profile else ()),
        *(from_file(file) if file else ()),
        *from_environment(environ or {}),
        *from_pairs(pairs),
    ]
    layers, provided = _provided(layers, environ or {})
    known = broker_settings()
    spelled = {name.lower(): name for name in known}
    given: dict[str, Given] = {}
    warnings: list[str] = []
    for each in layers:
        # Names from the environment have lost their case.
        each = each._replace(name=spelled.get(each.name.lower(), each.name))
        if declared_setting(each.name) is not None:
            _check(each)
            if each.source is SettingSource.FILE and (again := _repeated(each, given)):
                warnings.append(again)
            given[each.name] = each
            continue
        if is_done_anyway(each.name, each.text):
            continue
        is_variable = each.source is SettingSource.ENVIRONMENT
        if is_refused(each.name, each.text, from_environment=is_variable):
            raise ConfigError(
                f"{each.origin}: {each.name} has no effect yet, and the broker would be less "
                "protected than it says: remove it, and let only those you trust reach it"
            )
        problem = unknown(each.name, known)
        # A variable that resembles no setting belongs to another program.
        is_foreign = is_variable and (not problem.nearest or is_of_clients(each.name))
        if strict and not is_foreign:
            raise ConfigError(f"{each.origin}: {problem}")
        warnings.append(f"{each.origin}: {problem}")
    config = broker_config({name: each.text for name, each in given.items()})
    _refuse_missing_listeners(config.listener, given.values())
    _refuse_kraft_quorum(config)
    return Resolved(config, given, tuple(warnings), provided)


def _refuse_missing_listeners(listener: ListenerConfig, given: Iterable[Given]) -> None:
    """Refuse settings of unknown listeners: a misspelt name would leave the intended
    listener less protected.
    """
    opened = {each.listener for each in listener.endpoints()}
    elsewhere = {each.upper() for each in listener.controller_listener_names}
    for each in given:
        named = listener_of(each.name)
        if named is not None and named not in opened | elsewhere:
            raise ConfigError(
                f"{each.origin}: {each.name} is for a listener that is not there; listeners has "
                f"{', '.join(sorted(opened))}"
            )


def _refuse_kraft_quorum(config: BrokerConfig) -> None:
    """Refuse a KRaft quorum: its nodes would silently become separate clusters."""
    if config.zookeeper.zookeeper_connect is not None:
        return
    identity = config.identity
    for name, nodes in (
        ("controller.quorum.voters", identity.controller_quorum_voters),
        ("controller.quorum.bootstrap.servers", identity.controller_quorum_bootstrap_servers),
    ):
        if len(nodes) > 1:
            raise ConfigError(
                f"{name} names {len(nodes)} nodes, but there is no KRaft, and each would be a "
                "cluster of its own: several brokers need ZooKeeper; remove it, and set "
                "zookeeper.connect to the same address on each"
            )
    if identity.process_roles == ("controller",):
        raise ConfigError(
            "process.roles is controller, but there are no KRaft controllers: leave this node out; "
            "several brokers need ZooKeeper (zookeeper.connect)"
        )


def _provided(
    layers: list[Given], environ: Mapping[str, str]
) -> "tuple[list[Given], Provided | None]":
    """The settings with references to config providers resolved, without those of providers."""
    own = {each.name: each.text for each in layers if each.name.startswith(PROVIDERS)}
    if not own:
        return layers, None
    from penstock.config.providers import Providers  # late: rarely needed

    providers, found = Providers(own, environ), []
    for each in layers:
        if each.name in own:
            continue
        text = providers.resolved(each.origin, each.name, each.text)
        if text != each.text:
            _check_hidden(each, text)
        found.append(each._replace(text=text))
    return found, lambda name, text: providers.resolved("", name, text)


def _check_hidden(given: Given, text: str) -> None:
    """Like `_check`, but hides the value, which may be a secret whatever the setting is."""
    declared = declared_setting(given.name)
    try:
        if declared is not None:
            parse(declared, text)
    except SettingError:
        raise ConfigError(
            f"{given.origin}: {given.name} is [hidden], from a config provider, must be "
            f"{declared.allowed if declared else 'known'}"
        ) from None


def _check(given: Given) -> None:
    declared = declared_setting(given.name)
    assert declared is not None
    try:
        parse(declared, given.text)
    except SettingError as problem:
        raise problem.at(given.origin) from None


def _repeated(each: Given, given: Mapping[str, Given]) -> str | None:
    """A warning for a repeated setting. The last value in a properties file wins, as in Kafka; TOML
    and YAML refuse a repetition.
    """
    first = given.get(each.name)
    if first is None or first.source is not SettingSource.FILE:
        return None
    line = first.origin.rpartition(":")[2]
    return f"{each.origin}: {each.name} is set again, after line {line}; this last value is used"


def from_profile(name: str) -> Iterator[Given]:
    for key, text in profile_texts(name).items():
        yield Given(key, text, SettingSource.PROFILE, f"profile {name}")


def from_environment(environ: Mapping[str, str]) -> Iterator[Given]:
    for variable, name in setting_names(environ):
        yield Given(name, environ[variable], SettingSource.ENVIRONMENT, variable)


def from_pairs(pairs: Iterable[str]) -> Iterator[Given]:
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {pair!r}: must be name=value")
        yield Given(name.strip(), text, SettingSource.COMMAND_LINE, "--set")


def from_file(path: "Path") -> Iterator[Given]:
    """Read a file by its suffix: .toml, .yaml or .yml; others have Java's properties syntax."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from None
    match path.suffix.lower():
        case ".toml" | ".yaml" | ".yml" as suffix:
            # Imported late: such files are rare, and the parsers cost start-up time.
            from penstock.config.document import texts

            for name, text in texts(data, suffix, path.name):
                yield Given(name, text, SettingSource.FILE, path.name)
        case _:
            yield from _from_properties(data, path.name)


def _from_properties(data: bytes, file: str) -> Iterator[Given]:
    try:
        # Windows editors put a byte order mark before the first name
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # Java's encoding of these files
    try:
        for key, value, line in properties(text):
            yield Given(key, value, SettingSource.FILE, f"{file}:{line}")
    except ConfigError as problem:
        raise ConfigError(f"{file}: {problem}") from None
