"""What may differ between two correct brokers, per message and field. All else must be equal.

A rule turns a value into what is compared. It is listed by a path without indexes, such as
`topics.partitions`, under the response that it belongs to, so that the tolerated differences are
easy to see.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.types import NO_UUID

Rule: TypeAlias = Callable[[Any], Any]


def presence(text: str | None) -> str | None:
    """Any text is accepted, but null, empty and some text are different."""
    return "some text" if text else text


def a_time(time_ms: int) -> object:
    return "a time" if time_ms >= 0 else time_ms


def a_number(number: int) -> object:
    """Any non-negative number is accepted: negative ones have meanings."""
    return "a number" if number >= 0 else number


def ignored(_: object) -> str:
    return "ignored"


def in_any_order(values: list[Any]) -> list[Any]:
    return sorted(values)


def by(*names: str) -> Rule:
    """A list without a meaningful order, by the fields that identify its elements.

    A duplicate element is noticed: its second key has a number.
    """

    def keyed(structs: list[Any] | None) -> object:
        if structs is None:
            return None
        found: dict[str, Any] = {}
        for struct in structs:
            parts = [getattr(struct, name) for name in names]
            key = ",".join(_text(part) for part in parts if part not in (None, "", NO_UUID))
            repeats = sum(known.partition(" #")[0] == key for known in found)
            found[f"{key} #{repeats + 1}" if repeats else key] = struct
        return dict(sorted(found.items()))

    return keyed


def own(*names: str) -> Rule:
    """Like `by`, but only elements of this case: the broker also has those of other cases."""
    keyed = by(*names)

    def owned(structs: list[Any] | None) -> object:
        found = keyed(structs)
        assert isinstance(found, dict)
        return {key: struct for key, struct in found.items() if key.startswith("~")}

    return owned


def _text(part: object) -> str:
    return part.rstrip(b"\0").decode("latin-1") if isinstance(part, bytes) else str(part)


def without_times(text: str | None) -> str | None:
    """A text without the times at which its broker was asked."""
    return text and re.sub(r"-?\d{13,}", "a time", text)


EVERYWHERE: dict[str, Rule] = {
    "batch_index_error_message": without_times,
    "documentation": presence,
}
"""Texts for people, by field name. Error texts are compared: people and scripts look for Kafka's
words.
"""

TOPIC_AND_ID = by("name", "topic_id")


def by_entity(entries: list[Any] | None) -> object:
    """Quotas by entity; the order of an entity's parts is that of a hash map in Kafka."""
    return (
        None
        if entries is None
        else {
            ", ".join(
                sorted(f"{each.entity_type}={each.entity_name}" for each in entry.entity)
            ): entry
            for entry in entries
        }
    )


QUOTAS = {
    "entries": by_entity,
    "entries.entity": by("entity_type"),
    "entries.values": by("key"),
}

RULES: dict[str, dict[str, Rule]] = {
    "AlterClientQuotasResponse": QUOTAS,
    "DescribeClientQuotasResponse": QUOTAS,
    "ApiVersionsResponse": {
        "api_keys": by("api_key"),
        "supported_features": by("name"),
        "finalized_features": by("name"),
        "finalized_features_epoch": a_number,  # of Kafka's metadata log
    },
    "MetadataResponse": {"topics": TOPIC_AND_ID, "topics.partitions": by("partition_index")},
    "ProduceResponse": {
        "responses": TOPIC_AND_ID,  # the order of a hash map in Kafka
        "responses.partition_responses": by("index"),
        "responses.partition_responses.log_append_time_ms": a_time,
    },
    "ListOffsetsResponse": {"topics": by("name"), "topics.partitions": by("partition_index")},
    "InitProducerIdResponse": {"producer_id": a_number},
    "AddPartitionsToTxnResponse": {
        "results_by_topic_v3_and_below": by("name"),
        "results_by_topic_v3_and_below.results_by_partition": by("partition_index"),
        "results_by_transaction.topic_results": by("name"),
        "results_by_transaction.topic_results.results_by_partition": by("partition_index"),
    },
    "TxnOffsetCommitResponse": {
        "topics": TOPIC_AND_ID,
        "topics.partitions": by("partition_index"),
    },
    "DescribeTransactionsResponse": {
        "transaction_states.transaction_start_time_ms": a_time,
        "transaction_states.topics": by("topic"),
        "transaction_states.topics.partitions": in_any_order,
    },
    "WriteTxnMarkersResponse": {
        "markers.topics": by("name"),
        "markers.topics.partitions": by("partition_index"),
    },
    "ListTransactionsResponse": {"transaction_states": own("transactional_id")},
    "OffsetForLeaderEpochResponse": {
        "topics": by("topic"),
        "topics.partitions": by("partition"),
    },
    "CreateTopicsResponse": {"topics": by("name"), "topics.configs": by("name")},
    "DeleteTopicsResponse": {"responses": TOPIC_AND_ID},
    "CreatePartitionsResponse": {"results": by("name")},
    "DeleteRecordsResponse": {"topics": by("name"), "topics.partitions": by("partition_index")},
    "DescribeConfigsResponse": {
        "results": by("resource_type", "resource_name"),
        "results.configs": by("name"),
    },
    "AlterConfigsResponse": {"responses": by("resource_type", "resource_name")},
    "IncrementalAlterConfigsResponse": {"responses": by("resource_type", "resource_name")},
    "DescribeLogDirsResponse": {
        "results.topics": by("name"),
        "results.topics.partitions": by("partition_index"),
        "results.total_bytes": a_number,  # depends on the machine's disk
        "results.usable_bytes": a_number,
    },
    "AlterReplicaLogDirsResponse": {
        "results": by("topic_name"),
        "results.partitions": by("partition_index"),
    },
    "DescribeProducersResponse": {
        "topics": by("name"),
        "topics.partitions": by("partition_index"),
        "topics.partitions.active_producers": by("producer_id"),
    },
    "DescribeTopicPartitionsResponse": {"topics.partitions": by("partition_index")},
    "ListConfigResourcesResponse": {"config_resources": own("resource_name")},
    "ElectLeadersResponse": {
        "replica_election_results": by("topic"),
        "replica_election_results.partition_result": by("partition_id"),
    },
    "AlterPartitionReassignmentsResponse": {
        "responses": by("name"),
        "responses.partitions": by("partition_index"),
    },
    "ListPartitionReassignmentsResponse": {"topics": by("name")},
    "JoinGroupResponse": {"members": by("member_id")},
    "DescribeGroupsResponse": {"groups": by("group_id"), "groups.members": by("member_id")},
    "ListGroupsResponse": {"groups": own("group_id")},
    "OffsetCommitResponse": {"topics": TOPIC_AND_ID, "topics.partitions": by("partition_index")},
    "OffsetDeleteResponse": {"topics": by("name"), "topics.partitions": by("partition_index")},
    "OffsetFetchResponse": {
        "topics": by("name"),
        "topics.partitions": by("partition_index"),
        "groups.topics": TOPIC_AND_ID,
        "groups.topics.partitions": by("partition_index"),
    },
    "UpdateFeaturesResponse": {"results": by("feature")},
    # While partitions move, we ask members for more frequent heartbeats.
    "ConsumerGroupHeartbeatResponse": {"heartbeat_interval_ms": a_number},
    "StreamsGroupHeartbeatResponse": {"heartbeat_interval_ms": a_number},
    "StreamsGroupDescribeResponse": {"groups": by("group_id"), "groups.members": by("member_id")},
    "ConsumerGroupDescribeResponse": {
        "groups": by("group_id"),
        "groups.members": by("member_id"),
        "groups.members.assignment.topic_partitions.partitions": in_any_order,
    },
    "DeleteGroupsResponse": {"results": by("group_id")},
}
