"""Records deleted before they were read: an error, or with failOnDataLoss=false a warning."""

import logging

from penstock.errors import ErrorCode, KafkaError

logger = logging.getLogger("penstock.spark")


class DataLoss(KafkaError):
    """Records, or their topic, were deleted before they were read."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Records may be lost: they were deleted by retention, or their topic was, "
            "before they were read. To read what is left, set option failOnDataLoss to false"
        )


def report(what: str, *, fail: bool) -> None:
    if fail:
        raise DataLoss(what)
    logger.warning("%s; the read continues, since failOnDataLoss is false", what)


def resumed(position: int, end: int, earliest: int, latest: int) -> tuple[int, str]:
    """Where to continue if `position` is out of range, and which offsets are lost.

    Returns `end` if nothing of the range is left.
    """
    if position < earliest:
        return min(earliest, end), f"offsets {position} to {min(earliest, end) - 1} are gone"
    return (
        end,
        f"offset {position} is past the log's end {latest}: truncated or recreated",
    )
