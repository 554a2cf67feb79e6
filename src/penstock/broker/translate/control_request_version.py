"""The lowest versions of control requests that are safe to carry out."""

from penstock.broker.context import Context
from penstock.errors import ErrorCode, KafkaError


class ControlRequestTooOld(KafkaError):
    """The version lacks topic ids or leader epochs, so a stale request cannot be recognized."""

    code = ErrorCode.UNSUPPORTED_VERSION


def check_version(ctx: Context, lowest: int) -> None:
    if ctx.version < lowest:
        raise ControlRequestTooOld(
            f"{ctx.header.api.name} v{ctx.version}: v{lowest} is the lowest version served"
        )
