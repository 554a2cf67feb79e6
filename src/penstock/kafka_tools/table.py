"""Tools by script name; a tool's module is imported when it is called."""

from importlib import import_module
from typing import Final

from penstock.kafka_tools.tool import Tool

MODULES: Final = {
    "kafka-acls": "acls",
    "kafka-broker-api-versions": "broker_api_versions",
    "kafka-client-metrics": "client_metrics",
    "kafka-cluster": "cluster",
    "kafka-configs": "configs",
    "kafka-console-consumer": "console_consumer",
    "kafka-console-producer": "console_producer",
    "kafka-console-share-consumer": "console_share_consumer",
    "kafka-consumer-groups": "consumer_groups",
    "kafka-consumer-perf-test": "consumer_perf",
    "kafka-delegation-tokens": "delegation_tokens",
    "kafka-delete-records": "delete_records",
    "kafka-dump-log": "dump_log",
    "kafka-e2e-latency": "e2e_latency",
    "kafka-features": "features",
    "kafka-get-offsets": "get_offsets",
    "kafka-groups": "groups",
    "kafka-leader-election": "leader_election",
    "kafka-log-dirs": "log_dirs",
    "kafka-metadata-quorum": "metadata_quorum",
    "kafka-preferred-replica-election": "preferred_election",
    "kafka-producer-perf-test": "producer_perf",
    "kafka-reassign-partitions": "reassign",
    "kafka-replica-verification": "replica_verification",
    "kafka-run-class": "run_class",
    "kafka-server-start": "server_start",
    "kafka-server-stop": "server_stop",
    "kafka-share-consumer-perf-test": "share_consumer_perf",
    "kafka-share-groups": "share_groups",
    "kafka-simple-consumer-shell": "simple_consumer",
    "kafka-storage": "storage",
    "kafka-streams-groups": "streams_groups",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
    "kafka-verifiable-consumer": "verifiable_consumer",
    "kafka-verifiable-producer": "verifiable_producer",
    "kafka-verifiable-share-consumer": "verifiable_share_consumer",
    "zookeeper-server-start": "zookeeper_start",
    "zookeeper-server-stop": "zookeeper_stop",
    "zookeeper-shell": "zookeeper_shell",
}

MISTAKEN: Final = {"kafka-topic": "kafka-topics", "kafka-consumer-group": "kafka-consumer-groups"}
"""Common misspellings; each has a script that prints the right name."""


def tool(name: str) -> Tool:
    found: Tool = import_module(f"penstock.kafka_tools.{MODULES[name]}").TOOL
    return found
