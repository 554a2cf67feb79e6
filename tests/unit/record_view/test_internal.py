"""Records of internal topics, as they are shown."""

import json

import pytest

from penstock.cli.decoders import DECODERS, decoder_for
from penstock.coordinator.share.records import ShareFormat, ShareRecord
from penstock.coordinator.share.state import SharePartitionKey
from penstock.metadata.topic_names import INTERNAL_TOPICS
from penstock.record.record import Record
from penstock.types import NO_UUID
from penstock.wire.messages.share_snapshot_value import ShareSnapshotValue
from penstock.wire.messages.share_update_value import ShareUpdateValue


def test_every_internal_topic_has_a_decoder() -> None:
    assert DECODERS.keys() >= INTERNAL_TOPICS


@pytest.mark.parametrize(
    ("kind", "value"),
    [("0", ShareSnapshotValue(start_offset=7)), ("1", ShareUpdateValue(start_offset=7))],
)
def test_the_state_of_a_share_group_is_shown(
    kind: str, value: ShareSnapshotValue | ShareUpdateValue
) -> None:
    raw = ShareFormat().encode(ShareRecord(SharePartitionKey("g", NO_UUID, 3), value))
    shown = decoder_for("__share_group_state")(Record(0, 0, raw.key, raw.value, []))
    key, payload = json.loads(shown["key"]), json.loads(shown["payload"])
    assert (key["type"], key["data"]["groupId"], key["data"]["partition"]) == (kind, "g", 3)
    assert payload["data"]["startOffset"] == 7
