"""What an assignor is, and which ones there are by name."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from penstock.coordinator.group.consumer.assignor.by_range import by_range
from penstock.coordinator.group.consumer.assignor.subscriber import Shares, Subscriber
from penstock.coordinator.group.consumer.assignor.uniform import uniform
from penstock.errors import ConfigError
from penstock.types import Uuid

Assignor: TypeAlias = Callable[[Mapping[str, Subscriber], Mapping[Uuid, int]], Shares]
"""assignor(subscribers by member id, partition counts by topic id) -> shares by member id.

Pure: what it is given it must not change. A partition goes to one subscriber of its topic at most;
which it leaves out nobody reads.
"""

BUILT_IN: Mapping[str, Assignor] = {"uniform": uniform, "range": by_range}


class Assignors(msgspec.Struct, frozen=True):
    """Those that a broker offers; the first is for groups that name none."""

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
"""What a broker offers unless it is told otherwise."""
