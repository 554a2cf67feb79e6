"""Features: abilities that the whole cluster has at one level (KIP-584).

`metadata.version` and `kraft.version` are levels of KRaft's metadata log. There is none here, so
these features do not exist.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

GROUP_VERSION = "group.version"
"""From 1 on groups may speak the consumer protocol (KIP-848)."""
TRANSACTION_VERSION = "transaction.version"
"""From 1 on transactions are stored with tagged fields, from 2 on each has its epoch (KIP-890)."""

NO_EPOCH = -1


class Levels(Struct, frozen=True):
    """The levels of a feature that a broker can work at; both ends belong to them."""

    low: int
    high: int

    def __contains__(self, level: int) -> bool:
        return self.low <= level <= self.high


SUPPORTED: Final[Mapping[str, Levels]] = {
    GROUP_VERSION: Levels(0, 1),
    TRANSACTION_VERSION: Levels(0, 2),
}
"""A new cluster begins at the highest."""


class Features(Struct, frozen=True):
    """The levels that hold in the cluster; `epoch` grows with each change of one."""

    levels: Mapping[str, int] = field(default_factory=dict)
    epoch: int = NO_EPOCH

    def level(self, name: str) -> int:
        """0: the cluster does without."""
        return self.levels.get(name, 0)
