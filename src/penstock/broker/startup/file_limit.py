"""How many files and sockets this process may have open, and what gets how many of them.

A limit that is reached stops everything at once: connections, logs, even the stop. So each kind
has a share, and what opens a file for a moment finds one left.
"""

import resource
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penstock.errors import ErrorCode, KafkaError
from penstock.log.open_segments import MAX_LIMIT

DESCRIPTORS = (Path("/proc/self/fd"), Path("/dev/fd"))
FALLBACK = 10_240
"""What macOS allows where the hard limit is none."""
PARTITIONS_A_SEGMENT = 16
"""Partitions for each segment that may be open: with more, nearly every write opens its files."""


class TooManyPartitions(KafkaError):
    """More partitions than the limit of open files lets this broker serve well."""

    code = ErrorCode.POLICY_VIOLATION


class FileShares(NamedTuple):
    """The parts of a process's limit of open files."""

    limit: int
    segments: int
    """Segments kept open. They are closed and opened again as needed."""
    held: int
    """Files of logs open at all, with those that slow clients are still being sent."""
    connections: int

    @property
    def slices(self) -> int:
        """Files that one response may hold open until its client has read it."""
        return max((self.held - self.segments) // 4, 1)

    @property
    def partitions(self) -> int:
        """How many this broker may hold."""
        return self.segments * PARTITIONS_A_SEGMENT


def shares(limit: int) -> FileShares:
    """Two fifths for open segments, half for files of logs, three tenths for connections."""
    segments = min(limit * 4 // 10, MAX_LIMIT)
    return FileShares(limit, segments, segments + limit // 10, limit * 3 // 10)


def raised_file_limit() -> int:
    """The limit of open files, raised as far as the system allows, as a JVM does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, FALLBACK):
        if wanted == resource.RLIM_INFINITY or (soft != resource.RLIM_INFINITY and wanted <= soft):
            continue
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return FALLBACK if soft == resource.RLIM_INFINITY else soft


def check_room(shares: FileShares, held: int, replicas: int, brokers: int) -> None:
    """Refuse new replicas, spread over so many brokers, if this one would hold too many."""
    wanted = -(-replicas // max(brokers, 1))
    if held + wanted > shares.partitions:
        raise TooManyPartitions(
            f"{wanted} partitions more beside the {held} of this broker are more than the "
            f"{shares.partitions} that its limit of {shares.limit} open files allows; raise that "
            "limit (ulimit -n) or add brokers"
        )
