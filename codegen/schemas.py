"""Reads the message schemas in the official Kafka jars.

Takes names, types, versions and defaults, but none of their text.
"""

import json
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

# Excluded: keys that only KRaft quorums use.
INTERNAL = {52, 53, 54, 58, 59, 62, 63, 70, 73, 80, 81, 82, 94}
# Requests between brokers in ZooKeeper mode; Kafka 3.9 is the last version with them.
ZOOKEEPER_MODE = {4, 5, 6, 7, 56, 67}
# Those, and what leaders of share-partitions ask the coordinator of their state.
INTER_BROKER = ZOOKEEPER_MODE | {83, 84, 85, 86, 87}
# Messages that are no requests or responses: what group members send each other through the
# coordinator, and the records of coordinators and of KRaft's quorum.
DATA_MESSAGES = {
    "kafka-clients": (
        "ConsumerProtocolSubscription",
        "ConsumerProtocolAssignment",
        "LeaderChangeMessage",
        "SnapshotHeaderRecord",
        "SnapshotFooterRecord",
        "KRaftVersionRecord",
        "VotersRecord",
    ),
    "kafka-group-coordinator": (
        "OffsetCommitKey",
        "OffsetCommitValue",
        "GroupMetadataKey",
        "GroupMetadataValue",
        "ConsumerGroupMetadataKey",
        "ConsumerGroupMetadataValue",
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupMemberMetadataValue",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupTargetAssignmentMetadataValue",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMemberValue",
        "ConsumerGroupCurrentMemberAssignmentKey",
        "ConsumerGroupCurrentMemberAssignmentValue",
        "ConsumerGroupRegularExpressionKey",
        "ConsumerGroupRegularExpressionValue",
        "ShareGroupMemberMetadataKey",
        "ShareGroupMemberMetadataValue",
        "ShareGroupMetadataKey",
        "ShareGroupMetadataValue",
        "ShareGroupTargetAssignmentMetadataKey",
        "ShareGroupTargetAssignmentMetadataValue",
        "ShareGroupTargetAssignmentMemberKey",
        "ShareGroupTargetAssignmentMemberValue",
        "ShareGroupCurrentMemberAssignmentKey",
        "ShareGroupCurrentMemberAssignmentValue",
        "ShareGroupStatePartitionMetadataKey",
        "ShareGroupStatePartitionMetadataValue",
        "StreamsGroupMetadataKey",
        "StreamsGroupMetadataValue",
        "StreamsGroupMemberMetadataKey",
        "StreamsGroupMemberMetadataValue",
        "StreamsGroupTargetAssignmentMetadataKey",
        "StreamsGroupTargetAssignmentMetadataValue",
        "StreamsGroupTargetAssignmentMemberKey",
        "StreamsGroupTargetAssignmentMemberValue",
        "StreamsGroupCurrentMemberAssignmentKey",
        "StreamsGroupCurrentMemberAssignmentValue",
        "StreamsGroupTopologyKey",
        "StreamsGroupTopologyValue",
    ),
    "kafka-transaction-coordinator": ("TransactionLogKey", "TransactionLogValue"),
    "kafka-share-coordinator": (
        "ShareSnapshotKey",
        "ShareSnapshotValue",
        "ShareUpdateKey",
        "ShareUpdateValue",
    ),
}


class ApiSchema(NamedTuple):
    """One API: its key, versions, and the schemas of its request and response."""

    key: int
    name: str
    low: int
    high: int
    flexible: int | None
    request: dict[str, Any]
    response: dict[str, Any]


class Jars(NamedTuple):
    """Jars with schemas: the newest client's, the last with ZooKeeper mode, the servers'."""

    current: Path
    zookeeper_mode: Path
    group_coordinator: Path
    transaction_coordinator: Path
    share_coordinator: Path
    metadata: Path


def data_messages(jars: Jars) -> dict[str, dict[str, Any]]:
    """Schema by name of each message in `DATA_MESSAGES`."""
    found = {}
    sources = (
        jars.current,
        jars.group_coordinator,
        jars.transaction_coordinator,
        jars.share_coordinator,
    )
    for jar, names in zip(sources, DATA_MESSAGES.values(), strict=True):
        schemas = read_schemas(jar)
        found.update({name: schemas[name] for name in names})
    return found


def metadata_records(jars: Jars) -> dict[str, dict[str, Any]]:
    """Schema by name of each record in KRaft's metadata log, in order of record type."""
    schemas = read_schemas(jars.metadata)
    return dict(sorted(schemas.items(), key=lambda each: int(each[1]["apiKey"])))


def apis(current: Path, zookeeper_mode: Path) -> list[ApiSchema]:
    """Every API that a Penstock broker may support, by key."""
    found = []
    for jar in (current, zookeeper_mode):
        schemas = read_schemas(jar)
        requests = [s for s in schemas.values() if s["type"] == "request"]
        for request in requests:
            key = request["apiKey"]
            if key in INTERNAL or (key in ZOOKEEPER_MODE) != (jar is zookeeper_mode):
                continue
            name = request["name"].removesuffix("Request")
            low, high = versions(request)
            found.append(
                ApiSchema(
                    key, name, low, high, flexible(request), request, schemas[f"{name}Response"]
                )
            )
    return sorted(found)


def read_schemas(jar: Path) -> dict[str, dict[str, Any]]:
    """Schema by message name."""
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.namelist():
            if re.fullmatch(r"common/(message|metadata)/\w+\.json", entry):
                text = archive.read(entry).decode()
                schema = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
                found[schema["name"]] = schema
    return found


def versions(schema: dict[str, Any]) -> tuple[int, int]:
    """The lowest and the highest stable version."""
    low, _, high = schema["validVersions"].partition("-")
    return int(low), int(high or low) - bool(schema.get("latestVersionUnstable"))


def flexible(schema: dict[str, Any]) -> int | None:
    """The first version with compact lengths and tagged fields, or None."""
    text = schema["flexibleVersions"]
    return None if text == "none" else int(text.removesuffix("+"))
