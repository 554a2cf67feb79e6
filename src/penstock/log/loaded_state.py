"""The state in which start-up found a log."""

import msgspec

from penstock.log.epochs import LeaderEpochs
from penstock.log.producer_state import ProducerState
from penstock.log.segments import Segments


class LoadedState(msgspec.Struct):
    """A log as start-up found it."""

    segments: Segments
    producers: ProducerState
    epochs: LeaderEpochs
    log_start_offset: int
    recovery_point: int
    end_offset: int
    changed: bool
    """New, or repaired: there is something to sync even if nothing is appended."""
    unverified_gaps: list[int]
    """See `PartitionLog.unverified_gaps`."""
