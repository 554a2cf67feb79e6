"""Offsets held by an open transaction, while others delete or commit them."""

from differential.case import Case, Eventually, Step, case
from differential.cases.groups import _commit, _forget
from differential.cases.transactions import (
    ABORTED,
    COMMITTED,
    FETCHED,
    _add_offsets,
    _end,
    _init,
    _offsets,
)
from differential.requests import THREE
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

DELETED = DeleteGroupsRequest(groups_names=["~g"])
FORGOTTEN = Eventually(FETCHED, lambda reported: not reported.groups[0].topics)
"""Coordinators learn of a deletion after the answer."""
PENDING = (_init(), _add_offsets(), _offsets(0))


def _case(name: str, *steps: Step) -> Case:
    return case(f"pending, {name}", *steps, topics=THREE, api=TxnOffsetCommitRequest, until=4)


CASES: list[Case] = [
    _case("their group told", *PENDING, DescribeGroupsRequest(groups=["~g"]), ListGroupsRequest()),
    _case("their group deleted", *PENDING, DELETED, FETCHED, _end(), COMMITTED, FETCHED,
          DescribeGroupsRequest(groups=["~g"])),
    _case("some committed, their group deleted", _commit(3, 4), *PENDING, _offsets(2), DELETED,
          _end(), COMMITTED, FETCHED),
    _case("their group deleted, then more", *PENDING, DELETED, _offsets(1), _end(), COMMITTED,
          FETCHED),
    _case("aborted, their group deleted", *PENDING, _end(committed=False), ABORTED, DELETED),
    _case("deleted one by one", _commit(3, 4), *PENDING, _forget(0), FETCHED, _end(),
          COMMITTED, FETCHED),
    _case("a plain commit behind", *PENDING, _commit(9), FETCHED, _end(), COMMITTED, FETCHED),
    _case("a plain commit behind, then again", *PENDING, _commit(9), _offsets(0), _end(),
          COMMITTED, FETCHED),
    _case("their topic deleted", *PENDING,
          DeleteTopicsRequest(topics=[DeleteTopicState(name="~t")], topic_names=["~t"],
                              timeout_ms=20_000), FORGOTTEN,
          _end(), COMMITTED, FETCHED),
]  # fmt: skip
