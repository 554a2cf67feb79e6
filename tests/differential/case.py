"""A case is data: what is created first, what is asked, at which versions.

Names that begin with "~" belong to the case: each subject sees them behind a prefix of the case
and version, so that no case meets the topics of another. See `symbols.py` for what else has a
name of its own on each broker.
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
"""Between brokers, and the same in Kafka."""
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
"""Where Kafka 4.3 ends earlier than our table, which is that of 4.4."""


@dataclass(frozen=True)
class Raw:
    """Bytes as they stand, framed or not; what comes back is read as `answered_as`, if at all."""

    data: bytes
    answered_as: tuple[str, int] | None = None
    ends: bool = False
    """Nothing follows: the sender closes its side, as one that died would."""


@dataclass(frozen=True)
class Eventually:
    """Asked until the answer is as wanted: some changes reach a broker after their reply."""

    request: Message
    wanted: Callable[[Any], bool]


@dataclass(frozen=True)
class At:
    """A request at a version of its own, whatever that of the case is."""

    version: int
    request: Message


Step: TypeAlias = Message | At | Raw | Eventually


@dataclass(frozen=True)
class Case:
    """Every request's answer is compared, in order; the first of the case's API has the version.

    Requests of the API under test go out at the case's version, all others at their highest.
    """

    name: str
    api: Api
    requests: tuple[Step, ...]
    topics: tuple[CreatableTopic, ...] = ()
    since: int = 0
    until: int = 32767
    rules: Mapping[str, Mapping[str, Rule]] = field(default_factory=dict)
    """What may differ in this case beyond `rules.RULES`, in the same form."""

    @property
    def versions(self) -> tuple[int, ...]:
        """The lowest, a middle and the highest that both brokers have and the case allows."""
        low = max(self.api.low, self.since)
        high = min(highest(self.api), self.until)
        assert low <= high, self.name
        return tuple(sorted({low, (low + high) // 2, high}))

    def prefix(self, version: int) -> str:
        """The name in letters that a topic may have; the CRC keeps what they cannot show."""
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
