"""The plan of a reassignment, as `kafka-reassign-partitions.sh` writes and reads it. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from penstock.errors import ConfigError
from penstock.types import BrokerId, TopicPartition

ANY_DIRECTORY: Final = "any"


class _Row(msgspec.Struct):
    topic: str
    partition: int
    replicas: list[int]
    log_dirs: list[str] = []


class _Document(msgspec.Struct):
    partitions: list[_Row]
    version: int = 1


@dataclass(frozen=True, slots=True)
class TargetReplicas:
    """The target of a partition's replicas: brokers, and a log directory on each."""

    brokers: tuple[BrokerId, ...]
    directories: tuple[str, ...]


ReassignmentPlan = dict[TopicPartition, TargetReplicas]


class BadPlan(ConfigError):
    """A mistake in a plan, in Kafka's words where it has some."""


def parse_plan(data: bytes) -> ReassignmentPlan:
    try:
        document = msgspec.json.decode(data, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadPlan(f"not a reassignment: {error}") from None
    if document.version != 1:
        raise BadPlan(f"Not supported version field value {document.version}")
    if not document.partitions:
        raise BadPlan("Partition reassignment list cannot be empty")
    rows = [(TopicPartition(each.topic, each.partition), each) for each in document.partitions]
    if twice := [each for each, count in Counter(tp for tp, _ in rows).items() if count > 1]:
        listed = ",".join(map(str, sorted(twice)))
        raise BadPlan(f"Partition reassignment contains duplicate topic partitions: {listed}")
    return {tp: _target(tp, row) for tp, row in rows}


def _target(tp: TopicPartition, row: _Row) -> TargetReplicas:
    brokers = row.replicas
    if not brokers:
        raise BadPlan(f"Partition replica list cannot be empty: {tp}")
    if twice := sorted(each for each, count in Counter(brokers).items() if count > 1):
        raise BadPlan(
            f"Partition replica lists may not contain duplicate entries: {tp} contains multiple "
            f"entries for {','.join(map(str, twice))}"
        )
    directories = row.log_dirs or [ANY_DIRECTORY] * len(brokers)
    if len(directories) != len(brokers):
        raise BadPlan(
            f"Size of replicas list {brokers} is different from size of log dirs list "
            f"{directories} for partition {tp}"
        )
    return TargetReplicas(tuple(map(BrokerId, brokers)), tuple(directories))


def plan_json(plan: Mapping[TopicPartition, TargetReplicas]) -> str:
    rows = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": target.brokers,
            "log_dirs": target.directories,
        }
        for partition, target in sorted(plan.items())
    ]
    return msgspec.json.encode({"version": 1, "partitions": rows}).decode()
