"""The transactional producer's state machine: requests by state, fencing, both protocols."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.client.errors import BrokerRefused
from penstock.client.membership.member import GroupMetadata
from penstock.client.transaction import (
    ClientTransactions,
    ProducerFenced,
    State,
    TransactionMisused,
    TransactionMustAbort,
)
from penstock.errors import ErrorCode, KafkaError
from penstock.types import NO_UUID, Offset, TopicPartition
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.init_producer_id import InitProducerIdResponse

PLACE = TopicPartition("t", 0)
EXPLICIT: dict[str, int] = {}
IMPLICIT = {"transaction.version": 2}


def ready(features: dict[str, int]) -> ClientTransactions:
    transactions = ClientTransactions("x", 60_000)
    transactions.initialized(InitProducerIdResponse(producer_id=7, producer_epoch=3), features)
    return transactions


def began(features: dict[str, int]) -> ClientTransactions:
    transactions = ready(features)
    transactions.begin()
    return transactions


def test_partitions_and_groups_are_added_once_before_version_2() -> None:
    transactions = began(EXPLICIT)
    request = transactions.writing([PLACE, TopicPartition("t", 1)])
    assert request is not None
    assert [each.partitions for each in request.v3_and_below_topics] == [[0, 1]]
    assert transactions.writing([PLACE]) is None
    assert transactions.joining("g") is not None
    assert transactions.joining("g") is None


def test_writes_add_their_partitions_implicitly_as_of_version_2() -> None:
    transactions = began(IMPLICIT)
    assert transactions.writing([PLACE]) is None
    assert transactions.joining("g") is None
    assert transactions.end_request(commit=True) is not None
    transactions.ended(EndTxnResponse(producer_id=7, producer_epoch=4))
    assert transactions.session.producer_epoch == 4, "each end brings a new epoch"


def test_a_transaction_without_writes_needs_no_request() -> None:
    transactions = began(EXPLICIT)
    assert transactions.end_request(commit=True) is None
    assert transactions.state is State.READY


def test_a_failed_step_can_only_be_aborted() -> None:
    transactions = began(EXPLICIT)
    transactions.writing([PLACE])
    transactions.failed(BrokerRefused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t"))
    with pytest.raises(TransactionMustAbort, match="TOPIC_AUTHORIZATION_FAILED"):
        transactions.end_request(commit=True)
    with pytest.raises(TransactionMustAbort):
        transactions.writing([PLACE])
    assert transactions.end_request(commit=False) is not None
    transactions.ended(EndTxnResponse())
    assert transactions.needs_init, "sequences are unknown, so a new epoch is due"
    request = transactions.init_request()
    assert (request.producer_id, request.producer_epoch) == (7, 3)


def test_an_abort_of_a_transaction_that_never_began_is_no_error() -> None:
    """Before version 2 the coordinator refuses the abort if it refused all partitions."""
    transactions = began(EXPLICIT)
    transactions.writing([PLACE])
    transactions.failed(BrokerRefused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t"))
    transactions.end_request(commit=False)
    transactions.ended(EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE))
    assert transactions.needs_init
    transactions.initialized(InitProducerIdResponse(producer_id=7, producer_epoch=4), EXPLICIT)
    transactions.begin()


def test_an_end_without_a_response_can_only_be_repeated() -> None:
    transactions = began(IMPLICIT)
    transactions.writing([PLACE])
    first = transactions.end_request(commit=True)
    with pytest.raises(TransactionMisused, match="may have been committed"):
        transactions.end_request(commit=False)
    assert transactions.end_request(commit=True) == first


def test_a_commit_that_the_coordinator_cannot_complete_is_aborted() -> None:
    transactions = began(IMPLICIT)
    transactions.writing([PLACE])
    transactions.end_request(commit=True)
    with pytest.raises(TransactionMustAbort, match="cannot commit x"):
        transactions.ended(EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE))
    assert transactions.end_request(commit=False) is not None


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_does_nothing_more(code: ErrorCode) -> None:
    transactions = began(IMPLICIT)
    transactions.writing([PLACE])
    transactions.end_request(commit=True)
    with pytest.raises(ProducerFenced, match=f"{code.name}; another producer"):
        transactions.ended(EndTxnResponse(error_code=code))
    for call in (transactions.begin, transactions.init_request):
        with pytest.raises(ProducerFenced, match="make a new one"):
            call()


def test_an_epoch_refused_by_a_leader_requires_an_abort() -> None:
    transactions = began(IMPLICIT)
    transactions.writing([PLACE])
    transactions.failed(BrokerRefused(ErrorCode.INVALID_PRODUCER_EPOCH, "t-0"))
    assert transactions.state is State.MUST_ABORT


class TransactionsMachine(RuleBasedStateMachine):
    """Calls, responses, lost responses and errors in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.transactions = ClientTransactions("x", 60_000)
        self.coordinator_epoch = 0
        self.unanswered: EndTxnRequest | None = None
        self.committed_after_failure = False
        self.failed = False

    def attempt(self, call: Callable[[], object]) -> object:
        before = self.transactions.state
        try:
            return call()
        except (TransactionMisused, TransactionMustAbort):
            assert self.transactions.state is before, "a refused call changes nothing"
        except ProducerFenced:
            assert self.transactions.state is State.FENCED
        return None

    @rule(implicit=st.booleans())
    def initialize(self, implicit: bool) -> None:
        if self.transactions.needs_init and self.attempt(self.transactions.init_request):
            self.coordinator_epoch += 1
            response = InitProducerIdResponse(producer_id=1, producer_epoch=self.coordinator_epoch)
            self.transactions.initialized(response, IMPLICIT if implicit else EXPLICIT)

    @rule()
    def begin(self) -> None:
        if not self.transactions.needs_init:
            self.attempt(self.transactions.begin)
            if self.transactions.state is State.OPEN:
                self.failed = False

    @rule(index=st.integers(0, 2))
    def write(self, index: int) -> None:
        self.attempt(lambda: self.transactions.writing([TopicPartition("t", index)]))

    @rule()
    def offsets(self) -> None:
        def call() -> object:
            self.transactions.joining("g")
            return self.transactions.offsets_request(
                {PLACE: Offset(1)}, GroupMetadata("g"), {"t": NO_UUID}
            )

        self.attempt(call)

    @rule(code=st.sampled_from([ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_MEMBER_ID]))
    def fail(self, code: ErrorCode) -> None:
        was_open = self.transactions.state is State.OPEN
        self.transactions.failed(BrokerRefused(code, "step"))
        self.failed = self.failed or was_open

    @rule(commit=st.booleans())
    def end(self, commit: bool) -> None:
        request = self.attempt(lambda: self.transactions.end_request(commit=commit))
        if isinstance(request, EndTxnRequest):
            self.unanswered = request
            assert not (request.committed and self.failed), "what failed is never committed"

    @rule(fenced=st.booleans())
    def answer(self, fenced: bool) -> None:
        if self.unanswered is None or self.transactions.state is not State.ENDING:
            return
        assert self.unanswered.producer_epoch == self.coordinator_epoch
        self.unanswered = None
        if fenced:
            response = EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        elif self.transactions.is_implicit:
            self.coordinator_epoch += 1
            response = EndTxnResponse(producer_id=1, producer_epoch=self.coordinator_epoch)
        else:
            response = EndTxnResponse()
        self.attempt(lambda: self.transactions.ended(response))

    @invariant()
    def the_session_has_the_coordinators_epoch(self) -> None:
        if self.transactions.state not in {State.NEW, State.FENCED}:
            assert self.transactions.session.producer_epoch == self.coordinator_epoch


TestTransactionsMachine = TransactionsMachine.TestCase
TestTransactionsMachine.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


def test_errors_keep_kafkas_codes() -> None:
    codes = {each.code for each in (ProducerFenced, TransactionMustAbort, TransactionMisused)}
    assert codes == {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
    }
    assert all(issubclass(each, KafkaError) for each in (ProducerFenced, TransactionMustAbort))
