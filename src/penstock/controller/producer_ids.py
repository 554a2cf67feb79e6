"""Blocks of producer ids. Each id is allocated once in the life of a cluster."""

from typing import NamedTuple

from penstock.controller.context import ControllerContext
from penstock.controller.controlled_shutdown import check_broker_epoch
from penstock.metadata import paths
from penstock.metadata.records import ProducerIdBlock, decode, encode
from penstock.metadata.store import Set
from penstock.types import BrokerId, ProducerId

BLOCK_SIZE = 1000


class ProducerIds(NamedTuple):
    """The ids in [start, end)."""

    start: ProducerId
    end: ProducerId


async def next_block(
    context: ControllerContext, broker: BrokerId, broker_epoch: int
) -> ProducerIds:
    """The next block for this broker. A block lost in a crash is not allocated again."""
    check_broker_epoch(context, broker, broker_epoch)
    node = await context.store.get(paths.LATEST_PRODUCER_ID_BLOCK)
    start = ProducerId(0) if node.data is None else decode(ProducerIdBlock, node).next_start()
    block = ProducerIdBlock.of(broker, start, BLOCK_SIZE)
    await context.epoch.write(Set(node.path, encode(block), node.version))
    return ProducerIds(start, ProducerId(start + BLOCK_SIZE))
