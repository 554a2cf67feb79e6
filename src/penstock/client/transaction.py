"""A transactional producer's state machine: which requests are due, and what responses mean.

    NEW --initialized--> READY --begin--> OPEN --end--> ENDING --ended--> READY
                                           |  failed
                                           +--------> MUST_ABORT --end(abort)--> ENDING
    any --fenced--> FENCED

With `transaction.version` 2 (KIP-890) a first write adds its partition, and each end brings a new
epoch. With older versions, separate requests add partitions and groups.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final

from penstock.client.errors import check
from penstock.client.listing import by_topic
from penstock.client.membership.member import GroupMetadata
from penstock.client.producer_session import ProducerSession
from penstock.errors import ErrorCode, KafkaError
from penstock.types import Offset, TopicPartition, Uuid, indexes_by_topic
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

TRANSACTION_VERSION: Final = "transaction.version"
IMPLICIT_FROM: Final = 2
EXPLICIT_END_TXN: Final = 4
EXPLICIT_OFFSET_COMMIT: Final = 4
CLIENTS_ADD_PARTITIONS: Final = 3
"""Highest versions for clients that add partitions themselves; higher ones imply KIP-890."""

FENCING: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
"""Coordinator errors after which this producer can do nothing more, not even abort."""


class ProducerFenced(KafkaError):
    """Another producer uses the transactional id now, or the id has expired. Close this one."""

    code = ErrorCode.PRODUCER_FENCED


class TransactionMustAbort(KafkaError):
    """A step of the transaction failed, so it cannot be committed. Abort it; then continue."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class TransactionMisused(KafkaError):
    """A call that the state does not allow, such as a commit without a transaction."""

    code = ErrorCode.INVALID_TXN_STATE


class State(Enum):
    """See the diagram of the module."""

    NEW = auto()
    READY = auto()
    OPEN = auto()
    MUST_ABORT = auto()
    ENDING = auto()
    FENCED = auto()


class ClientTransactions:
    """One transaction after the other, under one transactional id."""

    def __init__(self, transactional_id: str, timeout_ms: int) -> None:
        self.id, self._timeout_ms = transactional_id, timeout_ms
        self.state = State.NEW
        self.session = ProducerSession(transactional_id=transactional_id)
        self._added: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._commits = False
        self._needs_new_epoch = False
        self._why: KafkaError | None = None

    @property
    def is_implicit(self) -> bool:
        return self.session.adds_implicitly

    @property
    def needs_init(self) -> bool:
        """Before the first transaction, and after an abort that left sequence numbers unknown."""
        return self.state is State.NEW or (self.state is State.READY and self._needs_new_epoch)

    def init_request(self) -> InitProducerIdRequest:
        """Request an id and an epoch, or a new epoch for the id (KIP-360)."""
        self._expect(State.NEW, State.READY)
        return InitProducerIdRequest(
            transactional_id=self.id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self.session.producer_id,
            producer_epoch=self.session.producer_epoch,
        )

    def initialized(self, response: InitProducerIdResponse, features: Mapping[str, int]) -> None:
        """Other producers with the same id are fenced from now on."""
        self._check(response.error_code, "producer id")
        implicit = features.get(TRANSACTION_VERSION, 0) >= IMPLICIT_FROM
        self._new_session(response.producer_id, response.producer_epoch, implicit=implicit)
        self.state, self._needs_new_epoch = State.READY, False

    def begin(self) -> None:
        self._expect(State.READY)
        assert not self._needs_new_epoch, "an initialization is due"
        self._added.clear()
        self._groups.clear()
        self._why = None
        self.state = State.OPEN

    def writing(self, partitions: Iterable[TopicPartition]) -> AddPartitionsToTxnRequest | None:
        """The request to send before writing to these partitions, if any."""
        self._expect(State.OPEN)
        new = [each for each in partitions if each not in self._added]
        # Added before the response: even if none comes, the transaction may have begun.
        self._added.update(new)
        if self.is_implicit or not new:
            return None
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.session.producer_id,
            v3_and_below_producer_epoch=self.session.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in indexes_by_topic(new).items()
            ],
        )

    def check_added(self, response: AddPartitionsToTxnResponse) -> None:
        for topic in response.results_by_topic_v3_and_below:
            for each in topic.results_by_partition:
                about = f"{topic.name}-{each.partition_index}"
                self._check(each.partition_error_code, about)

    def joining(self, group: str) -> AddOffsetsToTxnRequest | None:
        """The request to send before offsets of this group, if any."""
        self._expect(State.OPEN)
        is_known = group in self._groups
        self._groups.add(group)
        if self.is_implicit or is_known:
            return None
        return AddOffsetsToTxnRequest(
            transactional_id=self.id,
            producer_id=self.session.producer_id,
            producer_epoch=self.session.producer_epoch,
            group_id=group,
        )

    def check_joined(self, code: int) -> None:
        self._check(code, "group")

    def offsets_request(
        self,
        offsets: Mapping[TopicPartition, Offset],
        member: GroupMetadata,
        ids: Mapping[str, Uuid],
    ) -> TxnOffsetCommitRequest:
        self._expect(State.OPEN)
        assert member.group in self._groups, "the group was not added"
        return TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=member.group,
            producer_id=self.session.producer_id,
            producer_epoch=self.session.producer_epoch,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=name,
                    topic_id=ids[name],
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=each.partition, committed_offset=offsets[each]
                        )
                        for each in partitions
                    ],
                )
                for name, partitions in by_topic(offsets).items()
            ],
        )

    def check_offsets(self, response: TxnOffsetCommitResponse) -> None:
        for topic in response.topics:
            for each in topic.partitions:
                self._check(each.error_code, "offsets")

    def failed(self, error: KafkaError) -> KafkaError:
        """A step of the open transaction failed for good; returns the error to raise."""
        if self.state is State.FENCED or isinstance(error, ProducerFenced):
            self.state = State.FENCED
            return error
        if self.state is State.OPEN:
            self.state, self._needs_new_epoch, self._why = State.MUST_ABORT, True, error
        return error

    def end_request(self, *, commit: bool) -> EndTxnRequest | None:
        """The request that ends the transaction; None if nothing was written: then it has ended.

        After a lost response only the same kind of end may be requested again.
        """
        if commit and self.state is State.MUST_ABORT:
            raise TransactionMustAbort(
                f"transaction {self.id} cannot be committed: {self._why}; abort it"
            ) from self._why
        if self.state is State.ENDING and commit != self._commits:
            raise TransactionMisused(
                f"transaction {self.id} may have been {'committed' if self._commits else 'aborted'}"
                " already: only the same can be tried again"
            )
        self._expect(State.OPEN, State.MUST_ABORT, State.ENDING)
        self._commits = commit
        if not self._added and not self._groups:
            self.state = State.READY
            return None
        self.state = State.ENDING
        return EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.session.producer_id,
            producer_epoch=self.session.producer_epoch,
            committed=commit,
        )

    def ended(self, response: EndTxnResponse) -> None:
        """Raises `TransactionMustAbort` if the coordinator will not commit."""
        if response.error_code == ErrorCode.TRANSACTION_ABORTABLE:
            self.state, self._needs_new_epoch = State.MUST_ABORT, True
            self._why = TransactionMustAbort(f"the coordinator cannot commit {self.id}; abort it")
            raise self._why
        if not self._has_begun(response.error_code):
            self.state = State.READY
            return
        self._check(response.error_code, "commit" if self._commits else "abort")
        self.state = State.READY
        if self.is_implicit and response.producer_id >= 0:
            self._new_session(response.producer_id, response.producer_epoch, implicit=True)
            self._needs_new_epoch = False

    def _has_begun(self, code: int) -> bool:
        """Whether the coordinator has a transaction to abort. Before version 2 it refuses an abort
        if not: all partitions and groups were refused.
        """
        is_refused = code == ErrorCode.INVALID_TXN_STATE
        return self.is_implicit or self._commits or not is_refused

    def _new_session(self, producer_id: int, epoch: int, *, implicit: bool) -> None:
        self.session = ProducerSession(producer_id, epoch, self.id, implicit)

    def _check(self, code: int, about: str) -> None:
        if code in FENCING:
            self.state = State.FENCED
            name = ErrorCode(code).name
            raise ProducerFenced(
                f"transaction {self.id}, {about}: {name}; another producer uses this "
                "transactional id, or the transaction took longer than its timeout"
            )
        check(code, f"transaction {self.id}, {about}")

    def _expect(self, *states: State) -> None:
        if self.state is State.FENCED:
            raise ProducerFenced(f"the producer of {self.id} was fenced: make a new one")
        if self.state is State.MUST_ABORT and State.MUST_ABORT not in states:
            raise TransactionMustAbort(
                f"transaction {self.id} has failed: {self._why}; abort it"
            ) from self._why
        if self.state not in states:
            wanted = " or ".join(each.name for each in states)
            raise TransactionMisused(
                f"transaction {self.id} is {self.state.name}, must be {wanted}"
            )
