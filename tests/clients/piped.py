"""A client in another language: one JSON command per line in, one JSON answer per line out.

A command is an object with the name of a method of `Client` as `op` and its arguments; bytes are
base 64. The answer is `{"ok": ...}`, or `{"error": code, "text": ...}` if the broker refused; a
client that fails by itself answers with the code -1.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from clients.protocol import (
    WAIT_S,
    Acks,
    Cluster,
    Codec,
    Isolation,
    Partition,
    Placed,
    Poll,
    Record,
    RefusedError,
    Reset,
)
from peers.lines import LineProcess


class PipedClient:
    def __init__(self, process: LineProcess) -> None:
        self._process = process
        self._members = self._transactors = 0

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        self.ask("create_topic", topic=topic, count=partitions, configs=dict(configs or {}))

    def delete_topic(self, topic: str) -> None:
        self.ask("delete_topic", topic=topic)

    def topics(self) -> set[str]:
        return set(self.ask("topics"))

    def partitions(self, topic: str) -> list[Partition]:
        return [Partition(*part) for part in self.ask("partitions", topic=topic)]

    def create_partitions(self, topic: str, count: int) -> None:
        self.ask("create_partitions", topic=topic, count=count)

    def configs(self, topic: str) -> dict[str, str]:
        described: dict[str, str] = self.ask("configs", topic=topic)
        return described

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self.ask("replace_configs", topic=topic, configs=dict(configs))

    def alter_configs(self, topic: str, put: Mapping[str, str], delete: Sequence[str]) -> None:
        self.ask("alter_configs", topic=topic, configs=dict(put), delete=list(delete))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self.ask("delete_records", topic=topic, partition=partition, offset=before)

    def cluster(self) -> Cluster:
        return Cluster(*self.ask("cluster"))

    def offset(self, topic: str, partition: int, at: int) -> int:
        offset: int = self.ask("offset", topic=topic, partition=partition, at=at)
        return offset

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        idempotent: bool = False,
    ) -> list[Placed]:
        placed = self.ask(
            "produce",
            topic=topic,
            records=[_written(record) for record in records],
            codec=codec,
            acks=acks,
            idempotent=idempotent,
        )
        return [Placed(*place) for place in placed]

    def fetch(
        self, topic: str, partition: int, *reads: tuple[int, int], reset: Reset = "none"
    ) -> list[list[Record]]:
        found = self.ask("fetch", topic=topic, partition=partition, reads=reads, reset=reset)
        return [[_read(record) for record in records] for records in found]

    def join(
        self, group: str, *topics: str, isolation: Isolation = "read_uncommitted"
    ) -> "PipedMember":
        self._members += 1
        self.ask("join", member=self._members, group=group, topics=topics, isolation=isolation)
        return PipedMember(self, self._members)

    def transactor(self, transactional_id: str) -> "PipedTransactor":
        self._transactors += 1
        self.ask("transactor", transactor=self._transactors, id=transactional_id)
        return PipedTransactor(self, self._transactors)

    def close(self) -> None:
        self._process.close()

    def ask(self, op: str, **arguments: object) -> Any:
        line = json.dumps({"op": op, **arguments})
        answer = json.loads(self._process.ask(line, timeout_s=2 * WAIT_S))
        if "error" in answer:
            raise RefusedError(answer["error"], answer["text"])
        return answer["ok"]


class PipedTransactor:
    def __init__(self, client: PipedClient, number: int) -> None:
        self._client, self._number = client, number

    def begin(self) -> None:
        self._client.ask("txn_begin", transactor=self._number)

    def send(self, topic: str, records: Sequence[Record]) -> None:
        written = [_written(record) for record in records]
        self._client.ask("txn_send", transactor=self._number, topic=topic, records=written)

    def end(self, *, commits: bool) -> None:
        self._client.ask("txn_end", transactor=self._number, commits=commits)

    def close(self) -> None:
        self._client.ask("txn_close", transactor=self._number)


class PipedMember:
    def __init__(self, client: PipedClient, number: int) -> None:
        self._client, self._number = client, number

    def poll(self) -> Poll:
        records, assigned = self._client.ask("poll", member=self._number)
        held = {(topic, partition) for topic, partition in assigned}
        return Poll([_read(record) for record in records], held)

    def commit(self, topic: str, partition: int, offset: int) -> None:
        self._client.ask(
            "commit", member=self._number, topic=topic, partition=partition, offset=offset
        )

    def leave(self) -> None:
        self._client.ask("leave", member=self._number)


def _written(record: Record) -> dict[str, object]:
    return {
        "value": _text(record.value),
        "key": _text(record.key),
        "headers": [[name, _text(value)] for name, value in record.headers],
        "timestamp": record.timestamp_ms,
        "partition": record.partition,
    }


def _read(record: dict[str, Any]) -> Record:
    return Record(
        _bytes(record["value"]),
        _bytes(record["key"]),
        tuple((name, b64decode(value)) for name, value in record["headers"]),
        record["timestamp"],
        record["partition"],
        record["offset"],
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
