"""Changes of a cluster: abort hanging transactions, cancel reassignments, elect leaders."""

from msgspec import Struct

from penstock.client.elections import elect_leaders
from penstock.client.hanging import find_hanging
from penstock.client.producers import describe_producers
from penstock.client.reassignment import ongoing_reassignments, reassign
from penstock.client.transaction_admin import abort_hanging
from penstock.clock import SystemClock
from penstock.console.change import Change, Doing, Done, Int32, Int64
from penstock.console.reads import HANGS_MS
from penstock.counted import counted
from penstock.errors import ConfigError, ErrorCode
from penstock.types import TopicPartition
from penstock.wire.enums import ElectionType


class TransactionAbort(Struct, frozen=True, kw_only=True):
    """A transaction, identified by its first offset in a partition."""

    topic: str
    partition: Int32
    start_offset: Int64


async def abort(doing: Doing, wanted: TransactionAbort) -> Done:
    """Abort a transaction that the page lists as hanging, and no other.

    If the coordinator still has the transaction, its producer could commit it, get a success
    response, and lose the records before the abort marker.
    """
    tp = TopicPartition(wanted.topic, wanted.partition)
    active = (await describe_producers(doing.client, [tp]))[tp]
    if all(each.transaction_start != wanted.start_offset for each in active):
        raise ConfigError(f"{tp} has no open transaction from {wanted.start_offset} on")
    now_ms = SystemClock().now_ms()
    for _, each in await find_hanging(doing.client, [tp], older_than_ms=HANGS_MS, now_ms=now_ms):
        if each.transaction_start == wanted.start_offset:
            await abort_hanging(doing.client, tp, each)
            return Done(f"aborted the transaction of producer {each.id} in {tp}", "/transactions")
    raise ConfigError(
        f"the transaction of {tp} from {wanted.start_offset} on does not hang: "
        "its coordinator ends it, or it was written to within 15 minutes"
    )


class ReassignmentCancel(Struct, frozen=True, kw_only=True):
    """A partition that is being reassigned."""

    topic: str
    partition: Int32


async def cancel(doing: Doing, wanted: ReassignmentCancel) -> Done:
    tp = TopicPartition(wanted.topic, wanted.partition)
    if tp not in await ongoing_reassignments(doing.client):
        raise ConfigError(f"{tp} is not being moved")
    for error in await reassign(doing.client, {tp: None}):
        raise error
    return Done(f"cancelled the move of {tp}", "/reassignments")


class LeadersElect(Struct, frozen=True):
    """Applies to all partitions."""


async def elect(doing: Doing, _: LeadersElect) -> Done:
    found = await elect_leaders(doing.client, ElectionType.PREFERRED, None)
    for error in found.values():
        if error is not None and error.code is not ErrorCode.ELECTION_NOT_NEEDED:
            raise error
    elected = sum(each is None for each in found.values())
    return Done(f"elected {counted(elected, 'preferred leader')}")


CLUSTER = (
    Change(
        "transaction.abort",
        "POST",
        "/api/v1/transactions/abort",
        "Abort a transaction that hangs, by a marker in the partition.",
        TransactionAbort,
        abort,
    ),
    Change(
        "reassignment.cancel",
        "POST",
        "/api/v1/reassignments/cancel",
        "Cancel the move of a partition; it keeps the replicas that it had.",
        ReassignmentCancel,
        cancel,
    ),
    Change(
        "leaders.elect",
        "POST",
        "/api/v1/leaders/elect",
        "Elect the preferred leader of each partition.",
        LeadersElect,
        elect,
    ),
)
