"""Where a follower cuts its log so that it is a prefix of its leader's. Pure.

Leader epochs decide, never the high watermark (KIP-101, KIP-279): that lags behind on followers,
so cutting there can drop records that are committed, or keep others than the leader has.
"""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from penstock.log.epochs import LeaderEpochs

UNDEFINED = -1


class EpochEnd(Struct, frozen=True):
    """The largest epoch up to the one asked for that a log knows, and where it ended there."""

    epoch: int
    end_offset: int


class Cut(Struct, frozen=True):
    """Where to cut; unless it is the last one, the leader has to be asked again after it."""

    offset: int
    is_last: bool


TruncationRule: TypeAlias = Callable[[EpochEnd, LeaderEpochs, int, int], Cut]
"""From the leader's answer, the follower's epochs, its log's end and its high watermark."""


def diverging(
    epochs: LeaderEpochs, end_offset: int, last_fetched_epoch: int, fetch_offset: int
) -> EpochEnd | None:
    """A leader's view of a fetch: None where the reader's log agrees with its own so far.

    Else where the reader's last epoch, or the largest one below it, ended here (KIP-595).
    """
    epoch, ended = epochs.end_offset_for(last_fetched_epoch, end_offset)
    if epoch < last_fetched_epoch or ended < fetch_offset:
        return EpochEnd(epoch, ended)
    return None


def cut_at(leader: EpochEnd, epochs: LeaderEpochs, end_offset: int, high_watermark: int) -> Cut:
    """A follower's next cut, given its leader's answer."""
    if leader.end_offset == UNDEFINED:
        # The leader knows no epoch that old. There is nothing better than the high watermark.
        return Cut(min(high_watermark, end_offset), is_last=True)
    epoch, ended = epochs.end_offset_for(leader.epoch, end_offset)
    if UNDEFINED in {epoch, leader.epoch}:
        return Cut(min(leader.end_offset, end_offset), is_last=True)
    if epoch != leader.epoch:
        # The follower never met the epoch of the answer: what it has of later ones goes, and
        # then it asks about the one before.
        return Cut(min(ended, end_offset), is_last=False)
    return Cut(min(ended, leader.end_offset, end_offset), is_last=True)


class Restart(Struct, frozen=True):
    """Nothing that the follower has is in the leader's log any more: begin anew at `offset`."""

    offset: int


def within(
    leader_start_offset: int, leader_end_offset: int, end_offset: int
) -> Cut | Restart | None:
    """What to do about an end that is outside of the leader's log; None where it is not.

    A longer log than the leader's is left from before an unclean election. One that ends before
    the leader's begins slept through its retention.
    """
    if leader_end_offset < end_offset:
        return Cut(leader_end_offset, is_last=True)
    if leader_start_offset > end_offset:
        return Restart(leader_start_offset)
    return None


def not_yet_written(epochs: LeaderEpochs, leader_epoch: int) -> Cut | None:
    """What bears a later epoch than the leader's own was changed on disk: nobody wrote it.

    No CRC covers a batch's epoch, so only order tells, and nothing follows the last batch.
    """
    later = (each.start_offset for each in epochs.entries if each.epoch > leader_epoch)
    first = next(later, None)
    return None if first is None else Cut(first, is_last=True)
