"""Producer ids after a restore: the logs may have ids that the store would allocate again.

Records of the new owner of an id would be taken for repeated ones: acknowledged, and not written.
"""

import logging

from penstock.log.store import LogStore
from penstock.metadata import paths
from penstock.metadata.errors import BadVersion
from penstock.metadata.lost_producer_ids import beyond_lost
from penstock.metadata.records import ProducerIdBlock, decode_or_skip
from penstock.metadata.store import MetadataStore
from penstock.types import BrokerId

logger = logging.getLogger(__name__)


async def skip_lost_producer_ids(
    store: MetadataStore, broker: BrokerId, logs: LogStore, now_ms: int
) -> None:
    """Have the store allocate only ids that no producer in these logs has.

    Ids beyond the time are not from any store; see `beyond_lost`.
    """
    latest = max(
        (each for log in logs.logs.values() for each in log.producers.producers if each <= now_ms),
        default=-1,
    )
    path = paths.LATEST_PRODUCER_ID_BLOCK
    while True:
        node = (await store.get_many((path,))).get(path)
        if node is None:
            return
        last = None if node.data is None else decode_or_skip(ProducerIdBlock, node)
        if latest < (0 if last is None else last.next_start()):
            return
        try:
            await store.set(path, beyond_lost(node, broker, now_ms), node.version)
        except BadVersion:
            continue  # another broker was faster, or the controller
        logger.warning(
            "the metadata is older than the logs, which have producer id %d: the next ids begin "
            "at %d",
            latest,
            now_ms + 1,
        )
        return
