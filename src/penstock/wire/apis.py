"""The table of all APIs: key, name, versions, first flexible version.

A broker advertises only those that have a handler. `docs/compatibility.md` is generated from this
table.
"""

import re
from functools import cache
from importlib import import_module
from typing import Final

import msgspec

from penstock.wire.schema import Message


class Api(msgspec.Struct, frozen=True):
    """One API; its request and response have the same versions."""

    key: int
    name: str
    low: int
    high: int
    flexible: int = 32767
    """The first version with compact lengths and tagged fields."""
    inter_broker: bool = False
    """Used between brokers only."""

    @property
    def request(self) -> type[Message]:
        return message_type(f"{self.name}Request")

    @property
    def response(self) -> type[Message]:
        return message_type(f"{self.name}Response")


class DataMessage(msgspec.Struct, frozen=True):
    """The versions of a message outside of requests and responses: Kafka's schema type "data"."""

    low: int
    high: int
    flexible: int


@cache
def message_type(name: str) -> type[Message]:
    """The class of a message, by Kafka's name for it; its module is imported on first use."""
    module = import_module(
        f"penstock.wire.messages.{snake(re.sub('(Request|Response)$', '', name))}"
    )
    found: type[Message] = getattr(module, name)
    return found


@cache
def api_of(message: type[Message]) -> Api:
    """The API to which this request or response belongs."""
    return _BY_NAME[re.sub("(Request|Response)$", "", message.__name__)]


def first_flexible(message: type[Message]) -> int:
    """The first flexible version of a top-level message."""
    name = message.__name__
    return DATA_MESSAGES[name].flexible if name in DATA_MESSAGES else api_of(message).flexible


def snake(name: str) -> str:
    """Kafka's name of a message or field in snake case: `ISRNodes` becomes `isr_nodes`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


# --- written by codegen below this line ---

APIS: Final = {
    api.key: api
    for api in (
        Api(0, "Produce", 3, 13, flexible=9),
        Api(1, "Fetch", 4, 18, flexible=12),
        Api(2, "ListOffsets", 1, 11, flexible=6),
        Api(3, "Metadata", 0, 13, flexible=9),
        Api(4, "LeaderAndIsr", 0, 7, flexible=4, inter_broker=True),
        Api(5, "StopReplica", 0, 4, flexible=2, inter_broker=True),
        Api(6, "UpdateMetadata", 0, 8, flexible=6, inter_broker=True),
        Api(7, "ControlledShutdown", 0, 3, flexible=3, inter_broker=True),
        Api(8, "OffsetCommit", 2, 10, flexible=8),
        Api(9, "OffsetFetch", 1, 10, flexible=6),
        Api(10, "FindCoordinator", 0, 6, flexible=3),
        Api(11, "JoinGroup", 0, 9, flexible=6),
        Api(12, "Heartbeat", 0, 4, flexible=4),
        Api(13, "LeaveGroup", 0, 5, flexible=4),
        Api(14, "SyncGroup", 0, 5, flexible=4),
        Api(15, "DescribeGroups", 0, 6, flexible=5),
        Api(16, "ListGroups", 0, 5, flexible=3),
        Api(17, "SaslHandshake", 0, 1),
        Api(18, "ApiVersions", 0, 5, flexible=3),
        Api(19, "CreateTopics", 2, 7, flexible=5),
        Api(20, "DeleteTopics", 1, 6, flexible=4),
        Api(21, "DeleteRecords", 0, 2, flexible=2),
        Api(22, "InitProducerId", 0, 5, flexible=2),
        Api(23, "OffsetForLeaderEpoch", 2, 4, flexible=4),
        Api(24, "AddPartitionsToTxn", 0, 5, flexible=3),
        Api(25, "AddOffsetsToTxn", 0, 4, flexible=3),
        Api(26, "EndTxn", 0, 5, flexible=3),
        Api(27, "WriteTxnMarkers", 1, 2, flexible=1),
        Api(28, "TxnOffsetCommit", 0, 6, flexible=3),
        Api(29, "DescribeAcls", 1, 3, flexible=2),
        Api(30, "CreateAcls", 1, 3, flexible=2),
        Api(31, "DeleteAcls", 1, 3, flexible=2),
        Api(32, "DescribeConfigs", 1, 4, flexible=4),
        Api(33, "AlterConfigs", 0, 2, flexible=2),
        Api(34, "AlterReplicaLogDirs", 1, 2, flexible=2),
        Api(35, "DescribeLogDirs", 1, 5, flexible=2),
        Api(36, "SaslAuthenticate", 0, 2, flexible=2),
        Api(37, "CreatePartitions", 0, 3, flexible=2),
        Api(38, "CreateDelegationToken", 1, 3, flexible=2),
        Api(39, "RenewDelegationToken", 1, 2, flexible=2),
        Api(40, "ExpireDelegationToken", 1, 2, flexible=2),
        Api(41, "DescribeDelegationToken", 1, 3, flexible=2),
        Api(42, "DeleteGroups", 0, 3, flexible=2),
        Api(43, "ElectLeaders", 0, 2, flexible=2),
        Api(44, "IncrementalAlterConfigs", 0, 1, flexible=1),
        Api(45, "AlterPartitionReassignments", 0, 1, flexible=0),
        Api(46, "ListPartitionReassignments", 0, 0, flexible=0),
        Api(47, "OffsetDelete", 0, 0),
        Api(48, "DescribeClientQuotas", 0, 1, flexible=1),
        Api(49, "AlterClientQuotas", 0, 1, flexible=1),
        Api(50, "DescribeUserScramCredentials", 0, 0, flexible=0),
        Api(51, "AlterUserScramCredentials", 0, 0, flexible=0),
        Api(55, "DescribeQuorum", 0, 2, flexible=0),
        Api(56, "AlterPartition", 0, 3, flexible=0, inter_broker=True),
        Api(57, "UpdateFeatures", 0, 2, flexible=0),
        Api(60, "DescribeCluster", 0, 2, flexible=0),
        Api(61, "DescribeProducers", 0, 0, flexible=0),
        Api(64, "UnregisterBroker", 0, 0, flexible=0),
        Api(65, "DescribeTransactions", 0, 0, flexible=0),
        Api(66, "ListTransactions", 0, 2, flexible=0),
        Api(67, "AllocateProducerIds", 0, 0, flexible=0, inter_broker=True),
        Api(68, "ConsumerGroupHeartbeat", 0, 1, flexible=0),
        Api(69, "ConsumerGroupDescribe", 0, 1, flexible=0),
        Api(71, "GetTelemetrySubscriptions", 0, 0, flexible=0),
        Api(72, "PushTelemetry", 0, 0, flexible=0),
        Api(74, "ListConfigResources", 0, 1, flexible=0),
        Api(75, "DescribeTopicPartitions", 0, 0, flexible=0),
        Api(76, "ShareGroupHeartbeat", 1, 1, flexible=0),
        Api(77, "ShareGroupDescribe", 1, 1, flexible=0),
        Api(78, "ShareFetch", 1, 2, flexible=0),
        Api(79, "ShareAcknowledge", 1, 2, flexible=0),
        Api(83, "InitializeShareGroupState", 0, 0, flexible=0, inter_broker=True),
        Api(84, "ReadShareGroupState", 0, 0, flexible=0, inter_broker=True),
        Api(85, "WriteShareGroupState", 0, 1, flexible=0, inter_broker=True),
        Api(86, "DeleteShareGroupState", 0, 0, flexible=0, inter_broker=True),
        Api(87, "ReadShareGroupStateSummary", 0, 1, flexible=0, inter_broker=True),
        Api(88, "StreamsGroupHeartbeat", 0, 1, flexible=0),
        Api(89, "StreamsGroupDescribe", 0, 1, flexible=0),
        Api(90, "DescribeShareGroupOffsets", 0, 1, flexible=0),
        Api(91, "AlterShareGroupOffsets", 0, 0, flexible=0),
        Api(92, "DeleteShareGroupOffsets", 0, 0, flexible=0),
        Api(93, "StreamsGroupTopologyDescriptionUpdate", 0, 0, flexible=0),
    )
}
_BY_NAME: Final = {api.name: api for api in APIS.values()}
DATA_MESSAGES: Final = {
    "ConsumerProtocolSubscription": DataMessage(0, 3, flexible=32767),
    "ConsumerProtocolAssignment": DataMessage(0, 3, flexible=32767),
    "LeaderChangeMessage": DataMessage(0, 1, flexible=0),
    "SnapshotHeaderRecord": DataMessage(0, 0, flexible=0),
    "SnapshotFooterRecord": DataMessage(0, 0, flexible=0),
    "KRaftVersionRecord": DataMessage(0, 0, flexible=0),
    "VotersRecord": DataMessage(0, 0, flexible=0),
    "OffsetCommitKey": DataMessage(0, 0, flexible=32767),
    "OffsetCommitValue": DataMessage(0, 4, flexible=4),
    "GroupMetadataKey": DataMessage(0, 0, flexible=32767),
    "GroupMetadataValue": DataMessage(0, 4, flexible=4),
    "ConsumerGroupMetadataKey": DataMessage(0, 0, flexible=32767),
    "ConsumerGroupMetadataValue": DataMessage(0, 0, flexible=0),
    "ConsumerGroupMemberMetadataKey": DataMessage(0, 0, flexible=32767),
    "ConsumerGroupMemberMetadataValue": DataMessage(0, 0, flexible=0),
    "ConsumerGroupTargetAssignmentMetadataKey": DataMessage(0, 0, flexible=32767),
    "ConsumerGroupTargetAssignmentMetadataValue": DataMessage(0, 0, flexible=0),
    "ConsumerGroupTargetAssignmentMemberKey": DataMessage(0, 0, flexible=32767),
    "ConsumerGroupTargetAssignmentMemberValue": DataMessage(0, 0, flexible=0),
    "ConsumerGroupCurrentMemberAssignmentKey": DataMessage(0, 0, flexible=32767),
    "ConsumerGroupCurrentMemberAssignmentValue": DataMessage(0, 0, flexible=0),
    "ConsumerGroupRegularExpressionKey": DataMessage(0, 0, flexible=32767),
    "ConsumerGroupRegularExpressionValue": DataMessage(0, 0, flexible=0),
    "ShareGroupMemberMetadataKey": DataMessage(0, 0, flexible=32767),
    "ShareGroupMemberMetadataValue": DataMessage(0, 0, flexible=0),
    "ShareGroupMetadataKey": DataMessage(0, 0, flexible=32767),
    "ShareGroupMetadataValue": DataMessage(0, 0, flexible=0),
    "ShareGroupTargetAssignmentMetadataKey": DataMessage(0, 0, flexible=32767),
    "ShareGroupTargetAssignmentMetadataValue": DataMessage(0, 0, flexible=0),
    "ShareGroupTargetAssignmentMemberKey": DataMessage(0, 0, flexible=32767),
    "ShareGroupTargetAssignmentMemberValue": DataMessage(0, 0, flexible=0),
    "ShareGroupCurrentMemberAssignmentKey": DataMessage(0, 0, flexible=32767),
    "ShareGroupCurrentMemberAssignmentValue": DataMessage(0, 0, flexible=0),
    "ShareGroupStatePartitionMetadataKey": DataMessage(0, 0, flexible=32767),
    "ShareGroupStatePartitionMetadataValue": DataMessage(0, 0, flexible=0),
    "StreamsGroupMetadataKey": DataMessage(0, 0, flexible=32767),
    "StreamsGroupMetadataValue": DataMessage(0, 0, flexible=0),
    "StreamsGroupMemberMetadataKey": DataMessage(0, 0, flexible=32767),
    "StreamsGroupMemberMetadataValue": DataMessage(0, 0, flexible=0),
    "StreamsGroupTargetAssignmentMetadataKey": DataMessage(0, 0, flexible=32767),
    "StreamsGroupTargetAssignmentMetadataValue": DataMessage(0, 0, flexible=0),
    "StreamsGroupTargetAssignmentMemberKey": DataMessage(0, 0, flexible=32767),
    "StreamsGroupTargetAssignmentMemberValue": DataMessage(0, 0, flexible=0),
    "StreamsGroupCurrentMemberAssignmentKey": DataMessage(0, 0, flexible=32767),
    "StreamsGroupCurrentMemberAssignmentValue": DataMessage(0, 0, flexible=0),
    "StreamsGroupTopologyKey": DataMessage(0, 0, flexible=32767),
    "StreamsGroupTopologyValue": DataMessage(0, 0, flexible=0),
    "TransactionLogKey": DataMessage(0, 0, flexible=32767),
    "TransactionLogValue": DataMessage(0, 1, flexible=1),
    "ShareSnapshotKey": DataMessage(0, 0, flexible=32767),
    "ShareSnapshotValue": DataMessage(0, 0, flexible=0),
    "ShareUpdateKey": DataMessage(0, 0, flexible=32767),
    "ShareUpdateValue": DataMessage(0, 0, flexible=0),
    "RegisterBrokerRecord": DataMessage(0, 4, flexible=0),
    "UnregisterBrokerRecord": DataMessage(0, 0, flexible=0),
    "TopicRecord": DataMessage(0, 0, flexible=0),
    "PartitionRecord": DataMessage(0, 2, flexible=0),
    "ConfigRecord": DataMessage(0, 0, flexible=0),
    "PartitionChangeRecord": DataMessage(0, 2, flexible=0),
    "FenceBrokerRecord": DataMessage(0, 0, flexible=0),
    "UnfenceBrokerRecord": DataMessage(0, 0, flexible=0),
    "RemoveTopicRecord": DataMessage(0, 0, flexible=0),
    "DelegationTokenRecord": DataMessage(0, 0, flexible=0),
    "UserScramCredentialRecord": DataMessage(0, 0, flexible=0),
    "FeatureLevelRecord": DataMessage(0, 0, flexible=0),
    "ClientQuotaRecord": DataMessage(0, 0, flexible=0),
    "ProducerIdsRecord": DataMessage(0, 0, flexible=0),
    "BrokerRegistrationChangeRecord": DataMessage(0, 3, flexible=0),
    "AccessControlEntryRecord": DataMessage(0, 0, flexible=0),
    "RemoveAccessControlEntryRecord": DataMessage(0, 0, flexible=0),
    "NoOpRecord": DataMessage(0, 0, flexible=0),
    "ZkMigrationStateRecord": DataMessage(0, 0, flexible=0),
    "RemoveUserScramCredentialRecord": DataMessage(0, 0, flexible=0),
    "BeginTransactionRecord": DataMessage(0, 0, flexible=0),
    "EndTransactionRecord": DataMessage(0, 0, flexible=0),
    "AbortTransactionRecord": DataMessage(0, 0, flexible=0),
    "RemoveDelegationTokenRecord": DataMessage(0, 0, flexible=0),
    "RegisterControllerRecord": DataMessage(0, 0, flexible=0),
    "ClearElrRecord": DataMessage(0, 0, flexible=0),
}
"""Messages that are neither requests nor responses, by name."""
METADATA_RECORDS: Final = {
    0: "RegisterBrokerRecord",
    1: "UnregisterBrokerRecord",
    2: "TopicRecord",
    3: "PartitionRecord",
    4: "ConfigRecord",
    5: "PartitionChangeRecord",
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    9: "RemoveTopicRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    12: "FeatureLevelRecord",
    14: "ClientQuotaRecord",
    15: "ProducerIdsRecord",
    17: "BrokerRegistrationChangeRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    22: "RemoveUserScramCredentialRecord",
    23: "BeginTransactionRecord",
    24: "EndTransactionRecord",
    25: "AbortTransactionRecord",
    26: "RemoveDelegationTokenRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
}
"""The records of the KRaft metadata log, by type."""
