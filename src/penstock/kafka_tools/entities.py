"""Entities of `kafka-configs.sh`: `--entity-type` with a name, or short, as in `--topic NAME`."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.kafka_tools.options import Option, flag, text
from penstock.kafka_tools.parser import Arguments, UsageError

TYPES = (
    "topics",
    "clients",
    "users",
    "brokers",
    "broker-loggers",
    "ips",
    "client-metrics",
    "groups",
)
SHORT = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
DEFAULTS = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
OPTIONS: Sequence[Option] = (
    text("entity-type", "TYPE", f"One of {', '.join(TYPES)}.", repeats=True),
    text("entity-name", "NAME", "Name of the entity; the id of a broker.", repeats=True),
    flag("entity-default", "The defaults of all entities of the type."),
    *(
        text(name, "NAME", f"As --entity-type {kind} --entity-name NAME.")
        for name, kind in SHORT.items()
    ),
    *(flag(name, f"As --entity-type {kind} --entity-default.") for name, kind in DEFAULTS.items()),
)


@dataclass(frozen=True, slots=True)
class Entity:
    """A type and a name: None stands for all entities, "" for their default."""

    type: str
    name: str | None

    @property
    def singular(self) -> str:
        return self.type[:-1]  # also "client-metric", as Kafka prints it


def entities(args: Arguments) -> list[Entity]:
    """The entities that the options name, in the order of the types."""
    types, names = list(args.all("entity-type")), list(args.all("entity-name"))
    for each in types:
        if each not in TYPES:
            raise UsageError(
                f"Invalid entity type {each}, the entity type must be one of "
                f"{', '.join(TYPES)} with a --bootstrap-server or --bootstrap-controller argument"
            )
    if len(names) > len(types):
        raise UsageError("--entity-name must be used with --entity-type")
    found = [
        Entity(kind, names[index] if index < len(names) else None)
        for index, kind in enumerate(types)
    ]
    if args.has("entity-default"):
        found = [Entity(each.type, "" if each.name is None else each.name) for each in found]
    found += [Entity(kind, args.find(name)) for name, kind in SHORT.items() if args.has(name)]
    found += [Entity(kind, "") for name, kind in DEFAULTS.items() if args.has(name)]
    if not found:
        raise UsageError(
            "At least one entity type must be specified: --entity-type, or "
            + ", ".join(f"--{name}" for name in SHORT)
        )
    return found
