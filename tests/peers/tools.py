"""Kafka's own command-line tools by their script names, run from the jars."""

import subprocess
import zipfile
from collections.abc import Sequence
from functools import cache

from peers import jars
from peers.java import Profile, command
from peers.process import PeerError

# The packages change from release to release; the simple names do not.
TOOLS = {
    "kafka-acls": "AclCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-client-metrics": "ClientMetricsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "ConfigCommand",
    "kafka-console-consumer": "ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-share-consumer": "ConsoleShareConsumer",
    "kafka-consumer-groups": "ConsumerGroupCommand",
    "kafka-consumer-perf-test": "ConsumerPerformance",
    "kafka-delegation-tokens": "DelegationTokenCommand",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-dump-log": "DumpLogSegments",
    "kafka-e2e-latency": "EndToEndLatency",
    "kafka-features": "FeatureCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-groups": "GroupsCommand",
    "kafka-jmx": "JmxTool",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-metadata-quorum": "MetadataQuorumCommand",
    "kafka-producer-perf-test": "ProducerPerformance",
    "kafka-reassign-partitions": "ReassignPartitionsCommand",
    "kafka-replica-verification": "ReplicaVerificationTool",
    "kafka-share-consumer-perf-test": "ShareConsumerPerformance",
    "kafka-share-groups": "ShareGroupCommand",
    "kafka-storage": "StorageTool",
    "kafka-streams-application-reset": "StreamsResetter",
    "kafka-streams-groups": "StreamsGroupCommand",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
    "kafka-verifiable-consumer": "VerifiableConsumer",
    "kafka-verifiable-producer": "VerifiableProducer",
    "kafka-verifiable-share-consumer": "VerifiableShareConsumer",
}


def tool(
    name: str,
    *args: str,
    version: str = "4.3.1",
    stdin: str = "",
    check: bool = True,
    profile: Profile = "test",
    timeout_s: float = 60,
    jvm: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Runs a tool to its end; a failure raises with its output unless `check` is off."""
    done = subprocess.run(
        tool_command(name, *args, version=version, profile=profile, jvm=jvm),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if check and done.returncode:
        raise PeerError(f"{name} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def tool_command(
    name: str,
    *args: str,
    version: str = "4.3.1",
    profile: Profile = "test",
    jvm: Sequence[str] = (),
) -> list[str]:
    """The command line of a tool that keeps running beside the test."""
    return command(f"kafka-{version}", main_class(name, version), *args, profile=profile, jvm=jvm)


@cache
def main_class(name: str, version: str) -> str:
    simple = TOOLS[name]
    for artifact in ("kafka-tools", "kafka_2.13"):  # 3.9 has deprecated duplicates in the second
        with zipfile.ZipFile(jars.jar(f"kafka-{version}", artifact)) as archive:
            for entry in archive.namelist():
                if entry.endswith(f"/{simple}.class"):
                    return entry.removesuffix(".class").replace("/", ".")
    raise PeerError(f"Kafka {version} has no {name}")
