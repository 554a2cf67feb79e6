"""The capacity planner: computes needs from given figures or from the cluster's current load."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from math import isfinite
from typing import Any

from msgspec import Struct

from penstock.advice.capacity import Workload, capacity
from penstock.advice.workload import observed
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.errors import ConfigError

FIELDS = tuple(fields(Workload))
NEEDED = ("messages_per_second", "message_bytes", "retention_s")
WHOLE = ("replication_factor", "consumer_groups", "brokers")
FROM_CLUSTER = "from_cluster"


class Plan(Struct, frozen=True):
    """A workload and what it needs; `need` is null while figures are missing."""

    load: dict[str, float]
    need: dict[str, float] | None
    problem: str | None


async def plan(watch: ClusterWatch, _: ClusterLook, given: Mapping[str, str]) -> Plan:
    """With `from_cluster`, observed figures replace those given."""
    load: dict[str, float] = {}
    try:
        load |= figures(given)
        if given.get(FROM_CLUSTER):
            load |= await observed(watch.client, None)
        if missing := [each for each in NEEDED if each not in load]:
            problem = f"Give {', '.join(missing)}." if load else None
            return Plan(load, None, problem)
        arguments: dict[str, Any] = {
            name: int(value) if name in WHOLE else value for name, value in load.items()
        }
        found = Workload(**arguments)
        return Plan(asdict(found), asdict(capacity(found)), None)
    except ConfigError as error:
        return Plan(load, None, str(error))


def figures(given: Mapping[str, str]) -> dict[str, float]:
    found = {}
    for each in FIELDS:
        if text := given.get(each.name, ""):
            try:
                found[each.name] = float(text)
            except ValueError:
                raise ConfigError(f"{each.name}: {text!r} is not a number") from None
            if not isfinite(found[each.name]):
                raise ConfigError(f"{each.name}: {text!r} is not a finite number")
    return found
