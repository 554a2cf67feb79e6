"""Producer ids after the metadata was lost, and restored from a backup or from the logs.

Logs have producers whose ids the store would allocate again, and the records of their new owners
would be taken for duplicates: acknowledged, and not written. No broker allocates an id each
millisecond, so the time is beyond all ids in the logs.
"""

from penstock.metadata.records import ProducerIdBlock, decode_or_skip, encode
from penstock.metadata.store import Node
from penstock.types import BrokerId, ProducerId


def beyond_lost(node: Node, broker: BrokerId, now_ms: int) -> bytes | None:
    """What `/latest_producer_id_block` should hold, given the node as it is."""
    last = None if node.data is None else decode_or_skip(ProducerIdBlock, node)
    if last is not None and last.next_start() > now_ms:
        return node.data
    return encode(ProducerIdBlock.of(broker, ProducerId(now_ms), 1))
