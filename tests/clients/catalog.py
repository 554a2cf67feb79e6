"""The clients by name, and what each of them cannot do."""

from collections.abc import Callable
from typing import Literal

import pytest

from clients.aiokafka import AiokafkaClient
from clients.kafka_python import KafkaPythonClient
from clients.kcat import KcatClient
from clients.librdkafka import LibrdkafkaClient
from clients.piped import PipedClient
from clients.programs import go_program, java_program, node_program
from clients.protocol import Client
from peers.lines import LineProcess

Name = Literal[
    "librdkafka", "kafka-python", "aiokafka", "java", "kcat", "franz-go", "sarama", "kafkajs"
]


def _piped(name: str, program: Callable[[], list[str]]) -> Callable[[str], Client]:
    return lambda bootstrap: PipedClient(LineProcess(name, [*program(), bootstrap]))


START: dict[Name, Callable[[str], Client]] = {
    "librdkafka": LibrdkafkaClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
    "java": _piped("java", java_program),
    "kcat": KcatClient,
    "franz-go": _piped("franz-go", lambda: go_program("franz")),
    "sarama": _piped("sarama", lambda: go_program("sarama")),
    "kafkajs": _piped("kafkajs", lambda: node_program("kafkajs")),
}
"""How to start each client with the bootstrap address."""

Need = Literal[
    "alter configs",
    "bytes",
    "commit",
    "configs",
    "create",
    "delete records",
    "expression",
    "later topics",
    "members in turn",
    "murmur2",
    "replace configs",
    "reset",
    "seek",
    "static member",
    "time past the end",
    "timestamp",
    "transactions",
]

_NO_ADMIN = "has no admin calls but the metadata"
_OLD_ALTER_ONLY = "has only the older AlterConfigs"
_END_FOR_NONE = "answers with the end of the log"

CANNOT: dict[Name, dict[Need, str]] = {
    "kafka-python": {
        "members in turn": "two that one thread polls may rebalance for ever, also with Kafka",
        "replace configs": "fills in what is not named",
    },
    "aiokafka": {"alter configs": _OLD_ALTER_ONLY},
    "java": {"replace configs": "was removed in 4.0"},
    "kcat": {
        "create": _NO_ADMIN,
        "configs": _NO_ADMIN,
        "replace configs": _NO_ADMIN,
        "alter configs": _NO_ADMIN,
        "delete records": _NO_ADMIN,
        "timestamp": "sends the time of sending",
        "bytes": "takes headers as arguments of a command, which hold no NUL",
        "seek": "starts anew for every read",
        "commit": "commits what it has read, or nothing",
        "transactions": "has no transactional producer",
    },
    "franz-go": {"time past the end": _END_FOR_NONE},
    "sarama": {
        "expression": "subscribes to topics by their names alone",
        "murmur2": "hashes keys by FNV-1a",
        "reset": "reports the error and leaves the rest to its user",
    },
    "kafkajs": {
        "alter configs": _OLD_ALTER_ONLY,
        "later topics": "matches an expression once, when it subscribes",
        "reset": "has no consumer without a group",
        "static member": "has no setting for an instance id",
        "time past the end": _END_FOR_NONE,
    },
}
"""Why a client is left out of some scenarios; it runs all others."""


def able(*needs: Need) -> list[Name]:
    """The clients that can run a scenario with these needs."""
    return [name for name in START if not set(needs) & CANNOT.get(name, {}).keys()]


def over(*needs: Need) -> pytest.MarkDecorator:
    """Runs the scenario once with each able client, which it gets as `client`."""
    return pytest.mark.parametrize("client", able(*needs), indirect=True)
