"""The copying program of each client that has transactions; `job` describes what they do."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from clients.catalog import Name, able
from clients.programs import go_program, node_program
from peers.java import source_command

TESTS = Path(__file__).parents[2]


def _python(client: str) -> list[str]:
    path = f"PYTHONPATH={TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return ["env", path, sys.executable, "-m", f"clients.copying.with_{client}"]


COPIERS: dict[Name, Callable[[], list[str]]] = {
    "librdkafka": lambda: _python("librdkafka"),
    "kafka-python": lambda: _python("kafka_python"),
    "aiokafka": lambda: _python("aiokafka"),
    "java": lambda: source_command("Copier", jars="clients-4.4.0"),
    "franz-go": lambda: [*go_program("franz"), "copy"],
    "sarama": lambda: [*go_program("sarama"), "copy"],
    "kafkajs": lambda: node_program("kafkajs", "copy.js"),
}
assert set(COPIERS) == set(able("transactions"))
