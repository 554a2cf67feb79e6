"""kcat as Debian ships it, on an older librdkafka; each call is a run of the command."""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

from confluent_kafka import KafkaError

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
    Transactor,
)
from peers.jars import program
from peers.process import PeerError, last_lines
from penstock.errors import ErrorCode

# Lengths come before the bytes, since a key or value may contain anything.
FORMAT = r"%p %o %T %K %S %h\n%k%s"
END_OF_RECORD, END_OF_KEY = "\x01", "\x02"


class KcatClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        raise NotImplementedError

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError

    def create_partitions(self, topic: str, count: int) -> None:
        raise NotImplementedError

    def configs(self, topic: str) -> dict[str, str]:
        raise NotImplementedError

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        raise NotImplementedError

    def alter_configs(self, topic: str, put: Mapping[str, str], delete: Sequence[str]) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        raise NotImplementedError

    def topics(self) -> set[str]:
        return {topic["topic"] for topic in self._metadata()["topics"]}

    def partitions(self, topic: str) -> list[Partition]:
        (described,) = self._metadata("-t", topic)["topics"]
        return [
            Partition(
                part["partition"],
                part["leader"],
                [replica["id"] for replica in part["replicas"]],
                [replica["id"] for replica in part["isrs"]],
            )
            for part in described["partitions"]
        ]

    def cluster(self) -> Cluster:
        described = self._metadata()
        brokers = [broker["id"] for broker in described["brokers"]]
        return Cluster(brokers, described["controllerid"])

    def offset(self, topic: str, partition: int, at: int) -> int:
        answer = self._run("-Q", "-t", f"{topic}:{partition}:{at}").stdout.decode()
        found = re.fullmatch(r".* offset (-?\d+)\s*", answer)
        assert found, answer
        return int(found[1])

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        idempotent: bool = False,
    ) -> list[Placed]:
        settings = [
            *("-P", "-v", "-v", "-v", "-t", topic, "-z", codec),
            *("-D", END_OF_RECORD, "-K", END_OF_KEY),
            *("-X", f"acks={acks}", "-X", f"enable.idempotence={str(idempotent).lower()}"),
            *("-X", "partitioner=murmur2_random", "-X", "linger.ms=0"),
            *("-X", "topic.produce.offset.report=true"),
        ]
        placed = []
        for options, data in _runs(records):
            done = self._run(*settings, *options, stdin=data)
            reports = re.findall(rb"to partition (\d+) \(offset (-?\d+)\)", done.stderr)
            placed += [Placed(int(partition), int(offset)) for partition, offset in reports]
        return placed

    def fetch(
        self, topic: str, partition: int, *reads: tuple[int, int], reset: Reset = "none"
    ) -> list[list[Record]]:
        found = []
        for offset, count in reads:
            done = self._run(
                *("-C", "-q", "-t", topic, "-p", str(partition), "-f", FORMAT),
                *("-o", "beginning" if offset < 0 else str(offset), "-c", str(count)),
                *("-X", f"auto.offset.reset={'error' if reset == 'none' else reset}"),
                *("-X", "fetch.wait.max.ms=100"),
            )
            records, rest = parsed(done.stdout)
            assert not rest
            found.append(records)
        return found

    def join(
        self, group: str, *topics: str, isolation: Isolation = "read_uncommitted"
    ) -> "KcatMember":
        return KcatMember(
            [
                *(program("kcat"), "-b", self._bootstrap, "-u", "-f", FORMAT),
                *("-X", "auto.offset.reset=earliest", "-X", "enable.auto.commit=false"),
                *("-X", "heartbeat.interval.ms=300", "-X", "fetch.wait.max.ms=100"),
                *("-X", f"isolation.level={isolation}"),
                *("-G", group, *topics),
            ],
        )

    def transactor(self, transactional_id: str) -> Transactor:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing runs between two calls."""

    def _metadata(self, *options: str) -> Any:
        return json.loads(self._run("-L", "-J", *options).stdout)

    def _run(self, *options: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [program("kcat"), "-b", self._bootstrap, *options],
            input=stdin,
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        failures = re.findall(r"ERROR: .*|Delivery failed .*", done.stderr.decode())
        if done.returncode or failures:
            _refuse("\n".join(failures) or done.stderr.decode())
        return done


class KcatMember:
    def __init__(self, command: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-kcat-")
        self._out, self._log = Path(self._folder.name, "out"), Path(self._folder.name, "log")
        with self._out.open("wb") as out, self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=log
            )
        self._taken = 0

    def poll(self) -> Poll:
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(0.1)
            raise PeerError(f"kcat ended early\n{last_lines(self._log)}")
        records, _ = parsed(self._out.read_bytes())
        fresh, self._taken = records[self._taken :], len(records)
        changes = re.findall(r"rebalanced .*: (assigned|revoked): (.*)", self._log.read_text())
        held = changes[-1][1] if changes and changes[-1][0] == "assigned" else ""
        names = re.findall(r"(\S+) \[(\d+)\]", held)
        return Poll(fresh, {(topic, int(partition)) for topic, partition in names})

    def commit(self, topic: str, partition: int, offset: int) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        self._popen.terminate()
        self._popen.wait(WAIT_S)
        self._folder.cleanup()


def _runs(records: Sequence[Record]) -> Iterator[tuple[list[str], bytes]]:
    """Options and input of one run for all records that can share it.

    kcat's reports name no record: those for one partition come in order, and records without a
    partition are sent one by one.
    """

    def options(place_and_record: tuple[int, Record]) -> tuple[list[str], int]:
        place, record = place_and_record
        headers = [("-H", f"{name}={value.decode()}") for name, value in record.headers]
        chosen = [option for pair in headers for option in pair]
        if record.value is None:
            chosen.append("-Z")
        if record.partition is None:
            return chosen, place
        return [*chosen, "-p", str(record.partition)], -1

    for (chosen, _), group in groupby(enumerate(records), options):
        parts = []
        for _, record in group:
            key = b"" if record.key is None else record.key + END_OF_KEY.encode()
            parts.append(key + (record.value or b""))
        yield chosen, END_OF_RECORD.encode().join(parts)


def parsed(output: bytes) -> tuple[list[Record], bytes]:
    """The complete records in kcat's output by `FORMAT`, and the remaining bytes."""
    records = []
    while (end := output.find(b"\n")) >= 0:
        *numbers, headers = output[:end].decode().split(" ", 5)
        partition, offset, timestamp, key_bytes, value_bytes = map(int, numbers)
        value_at = end + 1 + max(key_bytes, 0)
        after = value_at + max(value_bytes, 0)
        if after > len(output):
            break
        records.append(
            Record(
                None if value_bytes < 0 else output[value_at:after],
                None if key_bytes < 0 else output[end + 1 : value_at],
                tuple(_header(pair) for pair in headers.split(",") if pair),
                timestamp,
                partition,
                offset,
            )
        )
        output = output[after:]
    return records, output


def _header(pair: str) -> tuple[str, bytes]:
    name, value = pair.split("=", 1)
    return name, value.encode()


def _refuse(text: str) -> NoReturn:
    """Raises the error whose librdkafka description is in the text; kcat prints no codes."""
    for code in ErrorCode:
        if code > 0 and KafkaError(code).str() in text:
            raise RefusedError(code, text)
    raise PeerError(text)
