"""The broker to which a request goes."""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeAlias

from penstock.types import BrokerId, TopicPartition


class BrokerRole(Enum):
    """Brokers chosen by role, without a parameter."""

    ANY = "any broker"
    CONTROLLER = "the controller"


ANY, CONTROLLER = BrokerRole.ANY, BrokerRole.CONTROLLER


@dataclass(frozen=True, slots=True)
class ToBroker:
    """The broker with this id."""

    id: BrokerId


@dataclass(frozen=True, slots=True)
class ToLeader:
    """The leader of the partition."""

    partition: TopicPartition


class KeyType(IntEnum):
    """Kind of coordinator, numbered as in FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class ToCoordinator:
    """The coordinator of a group or of a transactional id."""

    key: str
    type: KeyType = KeyType.GROUP


Route: TypeAlias = BrokerRole | ToBroker | ToLeader | ToCoordinator
