"""What the APIs of transactional producers share."""

from penstock.errors import ErrorCode

WAIT_MS = 5_000
"""How long a decision may take to be committed; then the producer hears to try again."""


def as_known(code: ErrorCode, *, since: int, version: int) -> ErrorCode:
    """PRODUCER_FENCED as older clients know it, of an API that has it `since` a version."""
    if code is ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
