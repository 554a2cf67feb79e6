"""Names that differ from broker to broker, as both sides of a case spell them.

Ids of topics, members and producers, a fetch session, a port, a cluster id and a log directory are
chosen by the broker. Requests contain symbols for them, and answers are translated back: so a wrong
topic id shows as a difference, where ignoring the field would hide it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import pack
from typing import Any

import msgspec

from differential.embedded import FIELDS, renamed
from penstock.record.batch import CorruptBatch, batches
from penstock.record.stamp import seal
from penstock.types import NO_UUID, Uuid
from penstock.wire.messages.init_producer_id import InitProducerIdResponse
from penstock.wire.schema import Message

SESSION = 1
"""The first fetch session of the case."""
PRODUCER = 7_000_001
"""The first producer id of the case; the next is one more."""
PRODUCER_ID_AT = 43
"""The position of the producer id in a batch."""
PORT = 9092
LOG_DIR = "~dir"
CLUSTER = "~cluster"


def member(number: int = 1) -> str:
    """Stands for a member id: the first one that the case received, or a later one."""
    return f"~member {number}"


def topic_id(name: str, life: int = 1) -> Uuid:
    """Stands for the id of the case's topic: the first one, or a later one after deletions."""
    return Uuid(f"{name}#{life}".encode().ljust(16, b"\0"))


@dataclass(frozen=True)
class Identity:
    """A broker's own values."""

    port: int
    cluster_id: str
    log_dir: str


@dataclass
class Symbols:
    """One broker's names for the things of one case."""

    prefix: str
    broker: Identity
    ids: dict[bytes, bytes] = field(default_factory=dict)
    sessions: list[int] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    producers: list[int] = field(default_factory=list)

    def concrete(self, message: Any) -> Any:
        """A request in this broker's terms."""
        return _mapped(message, self._concrete)

    def symbolic(self, message: Any) -> Any:
        """An answer in the case's terms; new names in it are learned."""
        self._learn(message)
        return _mapped(message, self._symbolic)

    def _concrete(self, name: str, value: Any) -> Any:
        if isinstance(value, bytes) and name in FIELDS:
            return renamed(name, value, self.concrete)
        if isinstance(value, str) and value.startswith("~"):
            if value.startswith("~member "):
                return self.members[int(value.removeprefix("~member ")) - 1]
            if value == LOG_DIR:
                return self.broker.log_dir
            return self.broker.cluster_id if value == CLUSTER else self.prefix + value[1:]
        if name == "session_id" and value == SESSION and self.sessions:
            return self.sessions[0]
        if name.endswith("producer_id") and value - PRODUCER in range(len(self.producers)):
            return self.producers[value - PRODUCER]
        if name == "records" and value is not None:
            return self._with_real_producers(value)
        if name == "topic_id":
            return next((real for real, symbol in self.ids.items() if symbol == value), value)
        return value

    def _with_real_producers(self, data: bytes) -> bytes:
        """Batches contain a producer id as well; those of other producers stay unchanged."""
        out = bytearray(data)
        try:
            found = list(batches(data))
        except CorruptBatch:
            return data
        for at, header in found:
            number = header.producer_id - PRODUCER
            if number in range(len(self.producers)):
                out[at + PRODUCER_ID_AT : at + PRODUCER_ID_AT + 8] = pack(
                    ">q", self.producers[number]
                )
                seal(out, at)
        return bytes(out)

    def _symbolic(self, name: str, value: Any) -> Any:
        if isinstance(value, bytes) and name in FIELDS:
            return renamed(name, value, lambda message: _mapped(message, self._symbolic))
        if isinstance(value, str):
            if value in self.members:
                return member(self.members.index(value) + 1)
            if value.startswith(self.prefix):
                return "~" + value[len(self.prefix) :]
            return {self.broker.log_dir: LOG_DIR, self.broker.cluster_id: CLUSTER}.get(value, value)
        if name == "port" and value == self.broker.port:
            return PORT
        if name == "session_id" and value in self.sessions:
            return SESSION + self.sessions.index(value)
        if name == "producer_id" and value in self.producers:
            return PRODUCER + self.producers.index(value)
        return self.ids.get(value, value) if name == "topic_id" else value

    def _learn(self, value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                self._learn(item)
        if not isinstance(value, Message):
            return
        name = getattr(value, "name", None)
        real = getattr(value, "topic_id", NO_UUID)
        if name and name.startswith(self.prefix) and real != NO_UUID and real not in self.ids:
            own = "~" + name[len(self.prefix) :]
            life = 1
            while topic_id(own, life) in self.ids.values():
                life += 1
            self.ids[real] = topic_id(own, life)
        member_id = getattr(value, "member_id", "")
        if member_id and member_id not in self.members:
            self.members.append(member_id)
        if isinstance(value, InitProducerIdResponse) and value.producer_id >= 0:
            self.producers += [value.producer_id] * (value.producer_id not in self.producers)
        session = getattr(value, "session_id", 0)
        if session and session not in self.sessions:
            self.sessions.append(session)
        for name in value.__struct_fields__:
            self._learn(getattr(value, name))


def _mapped(value: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    if isinstance(value, list):
        return [_mapped(item, change, name) for item in value]
    if isinstance(value, Message):
        return msgspec.structs.replace(
            value,
            **{f: _mapped(getattr(value, f), change, f) for f in value.__struct_fields__},
        )
    return change(name, value)
