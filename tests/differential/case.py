"""A case is data: what is created first, which requests are sent, at which versions.

Names that begin with "~" belong to the case: each subject sees them with a prefix of the case and
version, so that no case meets the topics of another. See `symbols.py` for other names that differ
between brokers.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

from differential.rules import Rule
from penstock.wire.apis import APIS, Api
from penstock.wire.messages.create_topics import CreatableTopic
from penstock.wire.schema import Message

SHARE_STATE = range(83, 88)
"""Requests between brokers that are the same in Kafka."""
API_OF = {
    api.request: api for api in APIS.values() if not api.inter_broker or api.key in SHARE_STATE
}

HIGHEST = {
    "ApiVersions": 4,
    "DeleteGroups": 2,
    "StreamsGroupDescribe": 0,
    "StreamsGroupHeartbeat": 0,
    "TxnOffsetCommit": 5,
}
"""Highest versions of APIs for which Kafka 4.3 ends below our table, which is that of 4.4."""


@dataclass(frozen=True)
class Raw:
    """Bytes sent unchanged, framed or not; the response is read as `answered_as`, if given."""

    data: bytes
    answered_as: tuple[str, int] | None = None
    ends: bool = False
    """Nothing follows: the sender closes its side, like one that died."""


@dataclass(frozen=True)
class Eventually:
    """Repeated until the answer is as wanted: some changes reach a broker after their reply."""

    request: Message
    wanted: Callable[[Any], bool]


@dataclass(frozen=True)
class At:
    """A request at a fixed version, whatever the case's version."""

    version: int
    request: Message


Step: TypeAlias = Message | At | Raw | Eventually


@dataclass(frozen=True)
class Case:
    """The answers to all requests are compared, in order.

    Requests of the API under test are sent at the case's version, all others at their highest.
    """

    name: str
    api: Api
    requests: tuple[Step, ...]
    topics: tuple[CreatableTopic, ...] = ()
    since: int = 0
    until: int = 32767
    rules: Mapping[str, Mapping[str, Rule]] = field(default_factory=dict)
    """Additional rules for this case, in the form of `rules.RULES`."""

    @property
    def versions(self) -> tuple[int, ...]:
        """The lowest, a middle and the highest version that both brokers support and the case
        allows.
        """
        low = max(self.api.low, self.since)
        high = min(highest(self.api), self.until)
        assert low <= high, self.name
        return tuple(sorted({low, (low + high) // 2, high}))

    def prefix(self, version: int) -> str:
        """The case's name in characters that a topic may have; the CRC keeps names distinct."""
        letters = re.sub("[^a-z0-9]+", "-", self.name.lower()).strip("-")
        return f"{letters}-{crc32(self.name.encode()) & 0xFFFF:04x}-v{version}-"


def highest(api: Api) -> int:
    return HIGHEST.get(api.name, api.high)


def case(
    name: str,
    *requests: Step,
    api: type[Message] | None = None,
    topics: tuple[CreatableTopic, ...] = (),
    since: int = 0,
    until: int = 32767,
    rules: Mapping[str, Mapping[str, Rule]] | None = None,
) -> Case:
    """A case of the API of its last message, unless `api` says otherwise."""
    if api is None:
        api = [type(request) for request in requests if isinstance(request, Message)][-1]
    tested = API_OF[api]
    return Case(f"{tested.name}: {name}", tested, requests, topics, since, until, rules or {})
