"""The clients by name, and what each of them cannot do."""

from collections.abc import Callable
from typing import Literal

import pytest

from clients.aiokafka import AiokafkaClient
from clients.kafka_python import KafkaPythonClient
from clients.kcat import KcatClient
from clients.librdkafka import LibrdkafkaClient
from clients.piped import PipedClient
from clients.protocol import Client
from peers.java import java_process

Name = Literal["librdkafka", "kafka-python", "aiokafka", "java", "kcat"]

JAVA = "clients-4.4.0"

START: dict[Name, Callable[[str], Client]] = {
    "librdkafka": LibrdkafkaClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
    "java": lambda bootstrap: PipedClient(java_process("Client", bootstrap, jars=JAVA)),
    "kcat": KcatClient,
}

Need = Literal[
    "alter configs",
    "bytes",
    "configs",
    "create",
    "delete records",
    "murmur2",
    "out of range",
    "replace configs",
    "reset",
    "seek",
    "time past the end",
    "timestamp",
]

CANNOT: dict[Name, dict[Need, str]] = {
    "kafka-python": {"replace configs": "always fills in what it does not change"},
    "kcat": {
        "create": "has no admin calls but the metadata",
        "configs": "has no admin calls but the metadata",
        "replace configs": "has no admin calls but the metadata",
        "alter configs": "has no admin calls but the metadata",
        "delete records": "has no admin calls but the metadata",
        "timestamp": "sends the time of sending",
        "bytes": "takes headers as arguments of a command, which hold no NUL",
        "seek": "starts anew for every read",
    },
    "java": {"replace configs": "was removed in 4.0"},
    "aiokafka": {"alter configs": "has only the older AlterConfigs"},
}


def able(*needs: Need) -> list[Name]:
    """The clients that a scenario with these needs runs over."""
    return [name for name in START if not set(needs) & CANNOT.get(name, {}).keys()]


def over(*needs: Need) -> pytest.MarkDecorator:
    """Run the scenario once with each able client, which it gets as `client`."""
    return pytest.mark.parametrize("client", able(*needs), indirect=True)
