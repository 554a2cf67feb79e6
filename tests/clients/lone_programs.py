"""The program of each client that is one member of a group; `lone_member` describes what they do.

kcat is left out: as a member it is librdkafka.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from clients.catalog import START, Name, Need, able
from clients.lone_member import LIBRARIES
from clients.programs import go_program, node_program
from peers.java import source_command

TESTS = Path(__file__).parents[1]


def _python(library: str) -> Callable[[], list[str]]:
    # By module, not by file: its folder has modules named after the libraries.
    program = ["env", f"PYTHONPATH={TESTS}", sys.executable, "-m", "clients.lone_member"]
    return lambda: [*program, library]


MEMBERS: dict[Name, Callable[[], list[str]]] = {
    **{library: _python(library) for library in LIBRARIES},
    "java": lambda: source_command("LoneMember", jars="clients-4.4.0"),
    "franz-go": lambda: [*go_program("franz"), "member"],
    "sarama": lambda: [*go_program("sarama"), "member"],
    "kafkajs": lambda: node_program("kafkajs", "member.js"),
}
assert set(START) - set(MEMBERS) == {"kcat"}


def lone(*needs: Need) -> list[Name]:
    """The clients that have such a program and these abilities."""
    return [name for name in able(*needs) if name in MEMBERS]
