"""Numbers in messages that clients and brokers know by name."""

from enum import IntEnum


class ElectionType(IntEnum):
    """The kind of election, in ElectLeaders (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class UpgradeType(IntEnum):
    """The changes of a feature's level that UpdateFeatures allows (KIP-584)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class AcknowledgeType(IntEnum):
    """A share consumer's decision about a record, in ShareFetch and ShareAcknowledge (KIP-932)."""

    GAP = 0
    """The offset has no record: a transaction marker, or removed by compaction."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """Renew the lock (KIP-1222)."""
