"""Producer ids after the metadata was lost, and restored from a backup or from the logs.

The restored store would allocate ids again that producers in the logs have. Records of the new
owners would be taken for duplicates: acknowledged, and not written. No broker allocates an id each
millisecond, so the time in milliseconds is beyond all ids in the logs.
"""

from penstock.metadata.records import ProducerIdBlock, decode_or_skip, encode
from penstock.metadata.store import Node
from penstock.types import BrokerId, ProducerId


def beyond_lost(node: Node, broker: BrokerId, now_ms: int) -> bytes | None:
    """The content that `/latest_producer_id_block` should have, given the present node."""
    last = None if node.data is None else decode_or_skip(ProducerIdBlock, node)
    if last is not None and last.next_start() > now_ms:
        return node.data
    return encode(ProducerIdBlock.of(broker, ProducerId(now_ms), 1))
