"""The shared part of the APIs of transactional producers."""

from penstock.errors import ErrorCode

WAIT_MS = 5_000
"""How long the coordinator waits for its record to be committed; then the producer retries."""


def code_for_version(code: ErrorCode, *, since: int, version: int) -> ErrorCode:
    """The code for the client's version: PRODUCER_FENCED exists `since` a version."""
    if code is ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
