"""Versions of a controller's requests that say too little to be carried out safely."""

from penstock.broker.context import Context
from penstock.errors import ErrorCode, KafkaError


class TooOld(KafkaError):
    """Without topic ids and leader epochs, old and new cannot be told apart."""

    code = ErrorCode.UNSUPPORTED_VERSION


def check_version(ctx: Context, lowest: int) -> None:
    if ctx.version < lowest:
        raise TooOld(f"{ctx.header.api.name} v{ctx.version}: v{lowest} is the lowest served")
