"""The type of assignors, and the built-in ones by name."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from penstock.coordinator.group.consumer.assignor.by_range import by_range
from penstock.coordinator.group.consumer.assignor.subscriber import GroupAssignment, Subscriber
from penstock.coordinator.group.consumer.assignor.uniform import uniform
from penstock.errors import ConfigError
from penstock.types import Uuid

Assignor: TypeAlias = Callable[[Mapping[str, Subscriber], Mapping[Uuid, int]], GroupAssignment]
"""assignor(subscribers by member id, partition counts by topic id) -> assignments by member id.

Pure: it must not change its arguments. It assigns a partition to at most one subscriber of its
topic; no member reads a partition that it leaves out.
"""

BUILT_IN: Mapping[str, Assignor] = {"uniform": uniform, "range": by_range}


class Assignors(msgspec.Struct, frozen=True):
    """The assignors that a broker offers; groups that name none use the first."""

    by_name: Mapping[str, Assignor]

    @property
    def default(self) -> str:
        return next(iter(self.by_name))


def named(names: Iterable[str], known: Mapping[str, Assignor] = BUILT_IN) -> Assignors:
    """The assignors that `group.consumer.assignors` names, in its order."""
    chosen = list(names)
    missing = [each for each in chosen if each not in known]
    if missing or not chosen:
        raise ConfigError(
            f"group.consumer.assignors: {', '.join(missing) or 'nothing'} is not among "
            f"{', '.join(known)}"
        )
    return Assignors({each: known[each] for each in chosen})


OFFERED = named(BUILT_IN)
"""The assignors that a broker offers by default."""
