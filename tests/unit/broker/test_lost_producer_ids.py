"""Producer ids in the logs that a restored store would allocate again."""

import asyncio
from collections.abc import Iterable

import pytest

from penstock.broker.startup.producer_ids import skip_lost_producer_ids
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.records import ProducerIdBlock, decode, encode
from penstock.metadata.store import Node
from penstock.metadata.tree import Tree
from penstock.testing.clock import ManualClock
from penstock.testing.logs import LogRig, batch_of
from penstock.types import BrokerId, ProducerId

ME = BrokerId(1)
NOW_MS = 1_800_000_000_000
BLOCK = 1_000


def rig(producer_id: int) -> LogRig:
    found = LogRig()
    found.append(batch_of(b"v", producer_id=producer_id, sequence=0), 0)
    return found


def block(start: int) -> bytes:
    return encode(ProducerIdBlock.of(ME, ProducerId(start), BLOCK))


class Overtaken(EmbeddedStore):
    """The controller allocates a block right after the first read."""

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        found = await super().get_many(paths)
        for node in found.values():
            if node.version == 0:
                await self.set(node.path, block(5 * BLOCK))
        return found


async def next_id(
    producer_id: int, data: bytes | None, kind: type[EmbeddedStore] = EmbeddedStore
) -> int:
    store = kind(Tree.in_memory(ManualClock()), asyncio.get_running_loop().call_soon)
    path = paths.LATEST_PRODUCER_ID_BLOCK
    await store.create(path, data)
    await skip_lost_producer_ids(store, ME, rig(producer_id).store, NOW_MS)
    node = await store.get(path)
    return 0 if node.data is None else decode(ProducerIdBlock, node).next_start()


@pytest.mark.parametrize(
    ("producer_id", "data", "expected"),
    [
        (BLOCK - 1, block(0), BLOCK),
        (BLOCK, block(0), NOW_MS + 1),
        (0, None, NOW_MS + 1),
        (-1, None, 0),
        (NOW_MS + 1, block(0), BLOCK),
    ],
    ids=["allocated", "lost", "never allocated", "no producer", "an id of no store"],
)
def test_ids_of_producers_in_the_logs_are_not_allocated_again(
    producer_id: int, data: bytes | None, expected: int
) -> None:
    assert asyncio.run(next_id(producer_id, data)) == expected


def test_a_block_that_is_allocated_meanwhile_counts() -> None:
    assert asyncio.run(next_id(BLOCK, block(0), Overtaken)) == 6 * BLOCK
