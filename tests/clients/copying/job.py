"""The task of a copying program, whatever client it uses: six arguments, and SIGTERM to end.

It reads the source in a group, writes `copy of <value>` to the same partition of the target, and
commits output and position in one transaction, which it sometimes aborts for no reason. On SIGTERM
it finishes its transaction and leaves the group.
"""

import faulthandler
import random
import signal
import sys
from collections.abc import Mapping
from typing import NamedTuple

RECORDS = 20
"""The most records of one transaction."""
SESSION_MS, HEARTBEAT_MS = 3000, 300
"""Short, so that a killed member is removed soon."""
WAIT_S = 20


class Job(NamedTuple):
    bootstrap: str
    group: str
    transactional_id: str
    source: str
    target: str
    abort_chance: float

    def aborts(self) -> bool:
        return random.random() < self.abort_chance


def job() -> Job:
    bootstrap, group, transactional_id, source, target, chance = sys.argv[1:]
    return Job(bootstrap, group, transactional_id, source, target, float(chance))


class Ending:
    """True once the program was asked to end."""

    def __init__(self) -> None:
        self._asked = False
        signal.signal(signal.SIGTERM, self._ask)
        # Prints the current stack at once: during a call of the client, the handler above has to
        # wait.
        # Of this thread only: the others keep running, and reading their frames may crash.
        faulthandler.register(signal.SIGTERM, all_threads=False, chain=True)

    def _ask(self, *_: object) -> None:
        self._asked = True

    def __bool__(self) -> bool:
        return self._asked


def copied(value: bytes | None) -> bytes:
    return b"copy of " + (value or b"")


class Batch:
    """The offset range of one transaction in each partition, half-open."""

    def __init__(self, *places: tuple[int, int]) -> None:
        starts: dict[int, int] = {}
        nexts: dict[int, int] = {}
        for partition, offset in places:
            starts.setdefault(partition, offset)
            nexts[partition] = offset + 1
        self.starts: Mapping[int, int] = starts
        self.nexts: Mapping[int, int] = nexts
