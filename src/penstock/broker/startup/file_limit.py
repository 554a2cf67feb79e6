"""Divides this process's limit of open files into shares.

A process at its limit can do nothing: accept connections, write logs, or even stop. So segments and
connections have a share each, and the rest is for files that are open only for a moment (a flush,
an index, a checkpoint). Code that would hold a file open checks for room first (`Files.has_room`).
`OutOfFiles` refuses a request and takes no directory offline, except where work would stop half way
(`finished_or_failed`).
"""

import resource
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penstock.errors import ErrorCode, KafkaError
from penstock.log.open_segments import MAX_LIMIT

DESCRIPTORS = (Path("/proc/self/fd"), Path("/dev/fd"))
FALLBACK = 10_240
"""The most that macOS allows if there is no hard limit."""
PARTITIONS_PER_SEGMENT = 16
"""Partitions per open segment. With more, nearly every write would open its files."""


class TooManyPartitions(KafkaError):
    """More partitions than the limit of open files lets this broker serve well."""

    code = ErrorCode.POLICY_VIOLATION


class FileShares(NamedTuple):
    """The shares of the limit of open files."""

    limit: int
    segments: int
    """Segments that stay open; others are opened on demand."""
    held: int
    """All open log files, including those still being sent to slow clients."""
    connections: int

    @property
    def slices(self) -> int:
        """Files that one response may hold open until the client has read it."""
        return max((self.held - self.segments) // 4, 1)

    @property
    def partitions(self) -> int:
        """How many partitions this broker may hold."""
        return self.segments * PARTITIONS_PER_SEGMENT


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
    """Refuse new replicas, spread over `brokers`, if this broker would hold too many."""
    wanted = -(-replicas // max(brokers, 1))
    if held + wanted > shares.partitions:
        raise TooManyPartitions(
            f"{wanted} partitions more beside the {held} of this broker are more than the "
            f"{shares.partitions} that its limit of {shares.limit} open files allows; raise that "
            "limit (ulimit -n) or add brokers"
        )
