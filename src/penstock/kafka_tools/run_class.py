"""`kafka-run-class.sh CLASS …`: runs the tool with this Kafka class name."""

from penstock.kafka_tools.options import Table
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool

CLASSES = {
    "AclCommand": "kafka-acls",
    "BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "ClientMetricsCommand": "kafka-client-metrics",
    "ClusterTool": "kafka-cluster",
    "ConfigCommand": "kafka-configs",
    "ConsoleConsumer": "kafka-console-consumer",
    "ConsoleProducer": "kafka-console-producer",
    "ConsoleShareConsumer": "kafka-console-share-consumer",
    "ConsumerGroupCommand": "kafka-consumer-groups",
    "ConsumerPerformance": "kafka-consumer-perf-test",
    "DelegationTokenCommand": "kafka-delegation-tokens",
    "DeleteRecordsCommand": "kafka-delete-records",
    "DumpLogSegments": "kafka-dump-log",
    "EndToEndLatency": "kafka-e2e-latency",
    "FeatureCommand": "kafka-features",
    "GetOffsetShell": "kafka-get-offsets",
    "GroupsCommand": "kafka-groups",
    "Kafka": "kafka-server-start",
    "LeaderElectionCommand": "kafka-leader-election",
    "LogDirsCommand": "kafka-log-dirs",
    "MetadataQuorumCommand": "kafka-metadata-quorum",
    "PreferredReplicaLeaderElectionCommand": "kafka-preferred-replica-election",
    "ProducerPerformance": "kafka-producer-perf-test",
    "ReassignPartitionsCommand": "kafka-reassign-partitions",
    "ReplicaVerificationTool": "kafka-replica-verification",
    "ShareConsumerPerformance": "kafka-share-consumer-perf-test",
    "ShareGroupCommand": "kafka-share-groups",
    "SimpleConsumerShell": "kafka-simple-consumer-shell",
    "StorageTool": "kafka-storage",
    "StreamsGroupCommand": "kafka-streams-groups",
    "TopicCommand": "kafka-topics",
    "TransactionsCommand": "kafka-transactions",
    "VerifiableConsumer": "kafka-verifiable-consumer",
    "VerifiableProducer": "kafka-verifiable-producer",
    "VerifiableShareConsumer": "kafka-verifiable-share-consumer",
}
"""Tools by simple class names, because packages change between releases."""


def tool_of(class_name: str) -> str:
    """The script that runs a class such as `kafka.tools.GetOffsetShell`."""
    simple = class_name.rpartition(".")[2].rstrip("$")
    found = CLASSES.get(simple)
    if found is None:
        from difflib import get_close_matches  # late: only needed for a mistake

        nearest = get_close_matches(simple, CLASSES, n=1)
        hint = f"; did you mean kafka.tools.{nearest[0]}?" if nearest else ""
        raise UsageError(f"Error: Could not find or load main class {class_name}{hint}")
    return found


def no_class(_args: Arguments) -> int:
    raise UsageError("USAGE: kafka-run-class.sh [-daemon] [-name servicename] classname [opts]")


TOOL = Tool(Table("kafka-run-class", "Run a tool by the name of its class.", ()), no_class)
