"""The option table of a tool, from which parser, checks and `--help` are derived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, TypedDict, Unpack

Values: TypeAlias = Mapping[str, Sequence[str]]
"""The values of each option; a flag has none."""


class Takes(Enum):
    """How many arguments follow an option."""

    NOTHING = "nothing"
    ONE = "one"
    OPTIONAL = "at most one"
    MANY = "one or more"


@dataclass(frozen=True, slots=True)
class Option:
    """One option; `old` marks an option that current Kafka no longer accepts."""

    name: str
    help: str
    takes: Takes = Takes.NOTHING
    metavar: str = ""
    kind: type[str] | type[int] | type[float] = str
    default: str | None = None
    also: tuple[str, ...] = ()
    """Other names of the option, including short ones."""
    repeats: bool = False
    required: bool = False
    old: bool = False


class More(TypedDict, total=False):
    """Further attributes of an option with a value; see `Option`."""

    also: tuple[str, ...]
    repeats: bool
    required: bool
    old: bool


def flag(name: str, text: str, *, also: tuple[str, ...] = (), old: bool = False) -> Option:
    return Option(name, text, also=also, old=old)


def text(
    name: str, metavar: str, about: str, *, default: str | None = None, **more: Unpack[More]
) -> Option:
    """An option with a text value."""
    return Option(name, about, Takes.ONE, metavar, default=default, **more)


def number(
    name: str, metavar: str, about: str, *, default: int | None = None, **more: Unpack[More]
) -> Option:
    """An option with an integer value."""
    shown = None if default is None else str(default)
    return Option(name, about, Takes.ONE, metavar, int, shown, **more)


@dataclass(frozen=True, slots=True)
class Table:
    """The options of a tool, or of one of its subcommands."""

    name: str
    """The script's name without `.sh`."""
    about: str
    options: Sequence[Option]
    commands: Mapping[str, "Table"] = field(default_factory=dict)
    """Subcommands such as `cluster-id`, by name; each also accepts the options above."""

    def all_options(self) -> list[Option]:
        return [*self.options, HELP, VERSION]


HELP = flag("help", "Print usage information.", also=("h",))
VERSION = flag("version", "Display the version.")

BOOTSTRAP = text("bootstrap-server", "HOST:PORT,...", "The brokers to connect to.", also=("b",))
COMMAND_CONFIG = text("command-config", "FILE", "Client settings in properties syntax.")
ZOOKEEPER = text(
    "zookeeper",
    "HOST:PORT/CHROOT",
    "The ZooKeeper of the cluster: the brokers registered there are used.",
    old=True,
)
BROKER_LIST = text("broker-list", "HOST:PORT,...", "As --bootstrap-server.", old=True)
CLUSTER = (BOOTSTRAP, COMMAND_CONFIG, ZOOKEEPER)
"""The options with which admin tools find their cluster."""
