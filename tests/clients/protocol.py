"""The operations of every client under test, in whatever language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from penstock.errors import ErrorCode

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal[0, 1, -1]
Reset = Literal["earliest", "latest", "none"]
Isolation = Literal["read_committed", "read_uncommitted"]

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

LATEST, EARLIEST = -1, -2
"""Used instead of a timestamp or an offset: the end of the log, and its first record."""

WAIT_S = 20
"""How long a client may take for one call before a test fails."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record to write, or one that was read; without a partition the client picks one."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    offset: int | None = None


class Placed(NamedTuple):
    """Where a record was stored; with acks=0 the offset is unknown and negative."""

    partition: int
    offset: int


class Partition(NamedTuple):
    number: int
    leader: int
    replicas: list[int]
    isr: list[int]


class Cluster(NamedTuple):
    brokers: list[int]
    controller: int


class RefusedError(Exception):
    """The broker refused, and the client reported the error code of the response."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = ErrorCode(code)


class Client(Protocol):
    """One unmodified client library behind the few operations that the scenarios need."""

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> set[str]: ...

    def partitions(self, topic: str) -> list[Partition]: ...

    def create_partitions(self, topic: str, count: int) -> None: ...

    def configs(self, topic: str) -> dict[str, str]: ...

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """AlterConfigs: unnamed settings return to their defaults."""

    def alter_configs(self, topic: str, put: Mapping[str, str], delete: Sequence[str]) -> None:
        """IncrementalAlterConfigs: unnamed settings stay."""

    def delete_records(self, topic: str, partition: int, before: int) -> None: ...

    def cluster(self) -> Cluster: ...

    def offset(self, topic: str, partition: int, at: int) -> int:
        """The first offset whose record is not older than `at`; -1 if there is none."""

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        idempotent: bool = False,
    ) -> list[Placed]: ...

    def fetch(
        self,
        topic: str,
        partition: int,
        *reads: tuple[int, int],
        reset: Reset = "none",
    ) -> list[list[Record]]:
        """Assigns the partition, then for each (offset, count) seeks there and reads that many."""

    def join(
        self, group: str, *topics: str, isolation: Isolation = "read_uncommitted"
    ) -> "Member": ...

    def transactor(self, transactional_id: str) -> "Transactor": ...

    def close(self) -> None: ...


class Transactor(Protocol):
    """A producer with a transactional id; a later one with the same id fences it."""

    def begin(self) -> None: ...

    def send(self, topic: str, records: Sequence[Record]) -> None:
        """Returns once the broker has acknowledged them."""

    def end(self, *, commits: bool) -> None: ...

    def close(self) -> None: ...


class Poll(NamedTuple):
    records: list[Record]
    assigned: set[tuple[str, int]]


class Member(Protocol):
    """A consumer in a group; it starts at the earliest record and commits only on request."""

    def poll(self) -> Poll:
        """What arrived in about a tenth of a second, and what it owns afterwards."""

    def commit(self, topic: str, partition: int, offset: int) -> None: ...

    def leave(self) -> None: ...
