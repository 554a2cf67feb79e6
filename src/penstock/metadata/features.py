"""Features: cluster-wide levels of abilities (KIP-584).

`metadata.version` and `kraft.version` concern KRaft's metadata log, which does not exist here, so
neither do these features.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

GROUP_VERSION = "group.version"
"""From level 1, groups may use the consumer protocol (KIP-848)."""
TRANSACTION_VERSION = "transaction.version"
"""From level 1, transactions are stored with tagged fields; from level 2, each transaction has its
own producer epoch (KIP-890).
"""

SHARE_VERSION = "share.version"
"""From level 1, groups may share the records of partitions (KIP-932); from level 2, they have dead
letters (KIP-1191).
"""

STREAMS_VERSION = "streams.version"
"""From level 1, brokers assign the tasks of Kafka Streams (KIP-1071)."""

NO_EPOCH = -1


class Levels(Struct, frozen=True):
    """The supported levels of a feature, both ends included."""

    low: int
    high: int

    def __contains__(self, level: int) -> bool:
        return self.low <= level <= self.high


SUPPORTED: Final[Mapping[str, Levels]] = {
    GROUP_VERSION: Levels(0, 1),
    SHARE_VERSION: Levels(0, 2),
    STREAMS_VERSION: Levels(0, 1),
    TRANSACTION_VERSION: Levels(0, 2),
}
"""A new cluster begins at the highest levels."""


class Features(Struct, frozen=True):
    """The current levels of the cluster; `epoch` grows with each change."""

    levels: Mapping[str, int] = field(default_factory=dict)
    epoch: int = NO_EPOCH

    def level(self, name: str) -> int:
        """0 if the feature is disabled."""
        return self.levels.get(name, 0)
