"""A controller epoch: won by creating `/controller`, numbered by `/controller_epoch`.

Every write of a controller is a transaction that checks the epoch's node. So a controller that
was succeeded without noticing cannot write anything: each of its transactions fails.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    StoreError,
    StoreUnavailable,
)
from penstock.metadata.records import ElectedController, decode_epoch, encode
from penstock.metadata.store import Answer, Check, Create, MetadataStore, Node, Operation, Set
from penstock.types import BrokerId

GROUP_OPERATIONS, GROUP_BYTES = 100, 1 << 18
"""Limits of one transaction of the store, unless a single multi is larger: far below the store's
own limits, and large enough that thousands of partitions do not cost a transaction each.
"""

Multi = Sequence[Operation]


class NotController(KafkaError):
    """Another broker is the controller."""

    code = ErrorCode.NOT_CONTROLLER


class ControllerEpoch:
    """Writes to the store that hold only until the next controller epoch begins."""

    def __init__(self, store: MetadataStore, number: int, epoch_version: int) -> None:
        self._store, self.number = store, number
        self._check = Check(paths.CONTROLLER_EPOCH, epoch_version)

    @classmethod
    async def win(cls, store: MetadataStore, broker: BrokerId, now_ms: int) -> "ControllerEpoch":
        """Win the controller election; `NotController` if another broker was first."""
        last = await _last_epoch(store)
        number = decode_epoch(last) + 1
        won = ElectedController(broker=broker, timestamp=str(now_ms))
        try:
            _, node = await store.multi(
                (
                    Create(paths.CONTROLLER, encode(won), ephemeral=True),
                    Set(paths.CONTROLLER_EPOCH, encode(number), last.version),
                )
            )
        except (NodeExists, BadVersion) as error:
            raise NotController("another broker is the controller") from error
        assert isinstance(node, Node)
        return cls(store, number, node.version)

    async def write(self, *operations: Operation) -> list[Answer]:
        """All of these in one transaction, if this epoch is still the latest."""
        (answers,) = await self.write_each((operations,))
        if isinstance(answers, StoreError):
            raise answers
        return answers

    async def write_each(self, multis: Iterable[Multi]) -> list[list[Answer] | StoreError]:
        """Several transactions in one round trip. Each succeeds or fails on its own.

        Failures are rare, so several transactions go as one. If such a group fails, it has written
        nothing, and its members are sent again one by one. A lost connection is raised whatever
        else was answered: the outcome is unknown, and the next controller reads everything anew.
        """
        groups = list(grouped(multis))
        answers = await self._send(
            [[each for multi in group for each in multi] for group in groups]
        )
        results: list[list[Answer] | StoreError] = []
        for group, answer in zip(groups, answers, strict=True):
            if not isinstance(answer, StoreError):
                rest = iter(answer)
                results += [list(islice(rest, len(multi))) for multi in group]
            elif len(group) == 1:
                results.append(answer)
            else:
                results += await self._send(group)
        return results

    async def _send(self, multis: Iterable[Multi]) -> list[list[Answer] | StoreError]:
        answers = await self._store.multi_many([(self._check, *each) for each in multis])
        for each in answers:
            if isinstance(each, StoreUnavailable):
                raise each
            if isinstance(each, BadVersion | NoNode) and each.path == paths.CONTROLLER_EPOCH:
                raise NotController(f"controller epoch {self.number} has passed")
        return [each if isinstance(each, StoreError) else each[1:] for each in answers]


def grouped(multis: Iterable[Multi]) -> Iterator[list[Multi]]:
    """Consecutive multis together, up to the limits of one transaction."""
    group: list[Multi] = []
    operations = size_bytes = 0
    for multi in multis:
        bytes_ = sum(len(each.data or b"") for each in multi if isinstance(each, Create | Set))
        operations, size_bytes = operations + len(multi), size_bytes + bytes_
        if group and (operations > GROUP_OPERATIONS or size_bytes > GROUP_BYTES):
            yield group
            group, operations, size_bytes = [], len(multi), bytes_
        group.append(multi)
    if group:
        yield group


async def _last_epoch(store: MetadataStore) -> Node:
    with suppress(NodeExists):
        await store.create(paths.CONTROLLER_EPOCH, encode(0))
    return await store.get(paths.CONTROLLER_EPOCH)
