"""Follows transactions batch by batch during a cleaning: which records were aborted, and which
markers no longer end anything. Pure.
"""

from collections import deque
from collections.abc import Iterable

from penstock.log.txn_index import AbortedTxn
from penstock.record.batch import BatchHeader
from penstock.record.control import EndTransactionMarker


class CleanedTransactions:
    """Fed with each batch from `start` on, in order; `aborted` comes from the log's indexes.

    `retained` collects aborted transactions that still have a batch, each when its marker is met:
    the cleaned segment's index must list them.
    """

    def __init__(self, aborted: Iterable[AbortedTxn], start: int) -> None:
        self.retained: list[AbortedTxn] = []
        # The marker of a transaction that ended before `start` will not come.
        ahead = (txn for txn in aborted if txn.last_offset >= start)
        self._to_come = deque(sorted(ahead, key=lambda txn: txn.first_offset))
        self._aborting: dict[int, AbortedTxn] = {}
        self._seen_of_aborted: set[int] = set()
        self._seen_of_committed: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of data belongs to a transaction that was aborted."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborting:
            self._seen_of_aborted.add(header.producer_id)
            return True
        self._seen_of_committed.add(header.producer_id)
        return False

    def ends_nothing(self, header: BatchHeader, marker: EndTransactionMarker | None) -> bool:
        """Whether no batch of the transaction is left that this control batch ends.

        `marker` is None for a batch that was emptied earlier.
        """
        self._begin_up_to(header.last_offset)
        if marker is None:
            return True
        if marker.committed:
            seen = header.producer_id in self._seen_of_committed
            self._seen_of_committed.discard(header.producer_id)
            return not seen
        aborted = self._aborting.pop(header.producer_id, None)
        if aborted is None or header.producer_id not in self._seen_of_aborted:
            return True
        self._seen_of_aborted.discard(header.producer_id)
        self.retained.append(aborted)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[0].first_offset <= offset:
            txn = self._to_come.popleft()
            self._aborting.setdefault(txn.producer_id, txn)
