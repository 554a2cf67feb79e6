"""Blocks of producer ids: each id is handed out once in a cluster's life."""

from typing import NamedTuple

from penstock.controller.office import Office
from penstock.metadata import paths
from penstock.metadata.records import ProducerIdBlock, decode, encode
from penstock.metadata.store import Set
from penstock.types import BrokerId, ProducerId

BLOCK_SIZE = 1000


class ProducerIds(NamedTuple):
    """The ids from `start` to `end`, which is not among them."""

    start: ProducerId
    end: ProducerId


async def next_block(office: Office, broker: BrokerId) -> ProducerIds:
    """A block for this broker. One that is lost in a crash is never handed out again."""
    node = await office.store.get(paths.LATEST_PRODUCER_ID_BLOCK)
    start = ProducerId(0) if node.data is None else decode(ProducerIdBlock, node).next_start()
    block = ProducerIdBlock.of(broker, start, BLOCK_SIZE)
    await office.term.write(Set(node.path, encode(block), node.version))
    return ProducerIds(start, ProducerId(start + BLOCK_SIZE))
