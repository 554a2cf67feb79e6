"""To whom a request goes."""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeAlias

from penstock.types import BrokerId, TopicPartition


class BrokerRole(Enum):
    """Roles that need no further word."""

    ANY = "any broker"
    CONTROLLER = "the controller"


ANY, CONTROLLER = BrokerRole.ANY, BrokerRole.CONTROLLER


@dataclass(frozen=True, slots=True)
class ToBroker:
    """The broker of this number."""

    id: BrokerId


@dataclass(frozen=True, slots=True)
class ToLeader:
    """Whoever leads the partition."""

    partition: TopicPartition


class KeyType(IntEnum):
    """What a coordinator coordinates, as FindCoordinator numbers it."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class ToCoordinator:
    """The coordinator of a group or of a transactional id."""

    key: str
    type: KeyType = KeyType.GROUP


Route: TypeAlias = BrokerRole | ToBroker | ToLeader | ToCoordinator
