"""Decides where a follower truncates its log, so that it is a prefix of its leader's. Pure.

Leader epochs decide, not the high watermark (KIP-101, KIP-279): a follower's high watermark lags,
so truncating there could drop committed records, or keep records that the leader does not have.
"""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from penstock.log.epochs import LeaderEpochs

UNDEFINED = -1


class EpochEnd(Struct, frozen=True):
    """A log's largest epoch up to the requested one, and its end offset there."""

    epoch: int
    end_offset: int


class OffsetTruncation(Struct, frozen=True):
    """Where to truncate; unless complete, the follower then asks its leader again."""

    offset: int
    is_complete: bool


TruncationRule: TypeAlias = Callable[[EpochEnd, LeaderEpochs, int, int], OffsetTruncation]
"""Takes the leader's response, the follower's epochs, its log end and its high watermark."""


def diverging(
    epochs: LeaderEpochs, end_offset: int, last_fetched_epoch: int, fetch_offset: int
) -> EpochEnd | None:
    """Where a follower's log diverges from its leader's; None if it does not (KIP-595).

    That is the end, on the leader, of the follower's last epoch or the largest one below it.
    """
    epoch, ended = epochs.end_offset_for(last_fetched_epoch, end_offset)
    if epoch < last_fetched_epoch or ended < fetch_offset:
        return EpochEnd(epoch, ended)
    return None


def truncation_by_epoch(
    leader: EpochEnd, epochs: LeaderEpochs, end_offset: int, high_watermark: int
) -> OffsetTruncation:
    """A follower's next truncation, given its leader's response."""
    if leader.end_offset == UNDEFINED:
        # The leader knows no epoch that old, so only the high watermark is left to go by.
        return OffsetTruncation(min(high_watermark, end_offset), is_complete=True)
    epoch, ended = epochs.end_offset_for(leader.epoch, end_offset)
    if UNDEFINED in {epoch, leader.epoch}:
        return OffsetTruncation(min(leader.end_offset, end_offset), is_complete=True)
    if epoch != leader.epoch:
        # The follower does not have the leader's epoch: it drops its later ones, then asks about
        # the epoch before.
        return OffsetTruncation(min(ended, end_offset), is_complete=False)
    return OffsetTruncation(min(ended, leader.end_offset, end_offset), is_complete=True)


class LogRestart(Struct, frozen=True):
    """The follower's log ends before the leader's begins: restart it empty at `offset`."""

    offset: int


def within(
    leader_start_offset: int, leader_end_offset: int, end_offset: int
) -> OffsetTruncation | LogRestart | None:
    """The step for a follower whose end is outside the leader's log; None if it is inside.

    A log longer than the leader's dates from before an unclean election. One that ends before the
    leader's start missed the leader's retention.
    """
    if leader_end_offset < end_offset:
        return OffsetTruncation(leader_end_offset, is_complete=True)
    if leader_start_offset > end_offset:
        return LogRestart(leader_start_offset)
    return None


def truncation_of_later_epochs(epochs: LeaderEpochs, leader_epoch: int) -> OffsetTruncation | None:
    """Truncate batches with a later epoch than the leader's own: their epoch changed on disk.

    No CRC covers a batch's epoch. Only the order of epochs shows the damage, and nothing follows
    the last batch.
    """
    later = (each.start_offset for each in epochs.entries if each.epoch > leader_epoch)
    first = next(later, None)
    return None if first is None else OffsetTruncation(first, is_complete=True)
