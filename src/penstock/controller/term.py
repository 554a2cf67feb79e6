"""A controller's time in office: won at `/controller`, numbered by `/controller_epoch`.

Every write of a controller is a transaction that checks the epoch's node. A controller that was
succeeded without noticing can thus decide what it likes: nothing of it gets into the store.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.records import Controller, decode, encode
from penstock.metadata.refusal import (
    BadVersion,
    NodeExists,
    NoNode,
    StoreError,
    StoreUnavailable,
)
from penstock.metadata.store import Answer, Check, Create, MetadataStore, Node, Operation, Set
from penstock.types import BrokerId

GROUP_OPERATIONS, GROUP_BYTES = 100, 1 << 18
"""What goes into one transaction of the store, unless a single one is larger: far from its limits,
and enough that thousands of partitions do not cost a transaction each.
"""

Multi = Sequence[Operation]


class NotController(KafkaError):
    """Another broker is the controller."""

    code = ErrorCode.NOT_CONTROLLER


class Term:
    """The right to write, until another controller has begun a term of its own."""

    def __init__(self, store: MetadataStore, epoch: int, epoch_version: int) -> None:
        self._store, self.epoch = store, epoch
        self._check = Check(paths.CONTROLLER_EPOCH, epoch_version)

    @classmethod
    async def begin(cls, store: MetadataStore, broker: BrokerId, now_ms: int) -> "Term":
        """Win the election, or be refused because another broker has."""
        last = await _last_epoch(store)
        epoch = decode(int, last) + 1
        won = Controller(broker=broker, timestamp=str(now_ms))
        try:
            _, node = await store.multi(
                (
                    Create(paths.CONTROLLER, encode(won), ephemeral=True),
                    Set(paths.CONTROLLER_EPOCH, encode(epoch), last.version),
                )
            )
        except (NodeExists, BadVersion) as error:
            raise NotController("another broker is the controller") from error
        assert isinstance(node, Node)
        return cls(store, epoch, node.version)

    async def write(self, *operations: Operation) -> list[Answer]:
        """All of these, if the term lasts."""
        (answers,) = await self.write_each((operations,))
        if isinstance(answers, StoreError):
            raise answers
        return answers

    async def write_each(self, multis: Iterable[Multi]) -> list[list[Answer] | StoreError]:
        """Several transactions in one go. Each holds or fails on its own, and answers so.

        As a rule none fails, so they go in groups; what is in a group that does is sent again.
        If the store went away, nobody knows what was written: that rises, whatever else was
        answered, and the next term finds out by reading everything.
        """
        groups = list(grouped(multis))
        answers = await self._send(
            [[each for multi in group for each in multi] for group in groups]
        )
        outcomes: list[list[Answer] | StoreError] = []
        for group, answer in zip(groups, answers, strict=True):
            if not isinstance(answer, StoreError):
                rest = iter(answer)
                outcomes += [list(islice(rest, len(multi))) for multi in group]
            elif len(group) == 1:
                outcomes.append(answer)
            else:
                outcomes += await self._send(group)
        return outcomes

    async def _send(self, multis: Iterable[Multi]) -> list[list[Answer] | StoreError]:
        answers = await self._store.multi_many([(self._check, *each) for each in multis])
        for each in answers:
            if isinstance(each, StoreUnavailable):
                raise each
            if isinstance(each, BadVersion | NoNode) and each.path == paths.CONTROLLER_EPOCH:
                raise NotController(f"the controller's epoch {self.epoch} has passed")
        return [each if isinstance(each, StoreError) else each[1:] for each in answers]


def grouped(multis: Iterable[Multi]) -> Iterator[list[Multi]]:
    """Neighbours together, as long as they are not too many."""
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
