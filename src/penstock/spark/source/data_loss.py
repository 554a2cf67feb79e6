"""Records that are gone before they were read: an error, or a warning and on (`failOnDataLoss`)."""

import logging

from penstock.errors import ErrorCode, KafkaError

logger = logging.getLogger("penstock.spark")


class DataLoss(KafkaError):
    """Records were deleted, or their topic was, before this read came to them."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Records may be lost: they were deleted by retention, or their topic was, "
            "before they were read. To go on with what there is, set option failOnDataLoss to false"
        )


def report(what: str, *, fail: bool) -> None:
    if fail:
        raise DataLoss(what)
    logger.warning("%s; failOnDataLoss is false, so the read goes on", what)


def resumed(position: int, end: int, earliest: int, latest: int) -> tuple[int, str]:
    """Where to go on when a broker has nothing at `position`, and what was lost up to there.

    The end means that nothing of the range is left.
    """
    if position < earliest:
        return min(earliest, end), f"offsets {position} to {min(earliest, end) - 1} are gone"
    return end, f"offset {position} is past the log's end {latest}: it was cut or made anew"
