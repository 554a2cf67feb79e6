"""Every API that the broker serves, by key. ApiVersions tells clients just these."""

from collections.abc import Mapping

from penstock.broker.dispatch import Handler
from penstock.broker.handlers.api_versions import api_versions
from penstock.broker.handlers.delete_records import delete_records
from penstock.broker.handlers.describe_producers import describe_producers
from penstock.broker.handlers.fetch import fetch
from penstock.broker.handlers.list_offsets import list_offsets
from penstock.broker.handlers.metadata import metadata
from penstock.broker.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from penstock.broker.handlers.produce import produce

HANDLERS: Mapping[int, Handler] = {
    0: produce,
    1: fetch,
    2: list_offsets,
    3: metadata,
    18: api_versions,
    21: delete_records,
    23: offset_for_leader_epoch,
    61: describe_producers,
}
