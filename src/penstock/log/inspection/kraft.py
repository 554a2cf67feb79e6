"""Settings of topics as KRaft keeps them: in a log of its own, `__cluster_metadata-0` (KIP-500).

A record's value is a frame version, a type, a version, and the message in flexible form
(KIP-631). A snapshot (`<end offset>-<epoch>.checkpoint`, KIP-630) holds such batches too, and
stands for all records before its end offset.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import ProtocolError
from penstock.log.files import Files
from penstock.record.batch import batches, crc_matches
from penstock.record.record import Record, records
from penstock.types import NO_UUID, Uuid
from penstock.wire.decoder import DecoderSource
from penstock.wire.primitives import uvarint
from penstock.wire.schema import Message, int8

FOLDER: Final = "__cluster_metadata-0"
LIMIT_BYTES: Final = 1 << 26


class TopicRecord(Message):
    """A topic that was made."""

    name: str = ""
    topic_id: Uuid = NO_UUID


class ConfigRecord(Message):
    """A setting that was changed, or with null taken away; a topic's has the type 2."""

    resource_type: int8 = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = None


class RemoveTopicRecord(Message):
    """A topic that was deleted, and its settings with it."""

    topic_id: Uuid = NO_UUID


_decoders = {
    number: DecoderSource(0, flexible=True).function(message)
    for number, message in ((2, TopicRecord), (4, ConfigRecord), (9, RemoveTopicRecord))
}
"""By type. Other records say nothing about settings; none of these has a later version."""


_TYPES: Final = {
    0: "REGISTER_BROKER_RECORD",
    1: "UNREGISTER_BROKER_RECORD",
    2: "TOPIC_RECORD",
    3: "PARTITION_RECORD",
    4: "CONFIG_RECORD",
    5: "PARTITION_CHANGE_RECORD",
    7: "FENCE_BROKER_RECORD",
    8: "UNFENCE_BROKER_RECORD",
    9: "REMOVE_TOPIC_RECORD",
    10: "DELEGATION_TOKEN_RECORD",
    11: "USER_SCRAM_CREDENTIAL_RECORD",
    12: "FEATURE_LEVEL_RECORD",
    14: "CLIENT_QUOTA_RECORD",
    15: "PRODUCER_IDS_RECORD",
    17: "BROKER_REGISTRATION_CHANGE_RECORD",
    18: "ACCESS_CONTROL_ENTRY_RECORD",
    19: "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    20: "NO_OP_RECORD",
    21: "ZK_MIGRATION_STATE_RECORD",
    22: "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
    23: "BEGIN_TRANSACTION_RECORD",
    24: "END_TRANSACTION_RECORD",
    25: "ABORT_TRANSACTION_RECORD",
    26: "REMOVE_DELEGATION_TOKEN_RECORD",
    27: "REGISTER_CONTROLLER_RECORD",
}


def topic_configs(files: Files, directory: Path) -> Mapping[str, Mapping[str, str]]:
    """The settings of each topic that has any; none where KRaft has not written."""
    names: dict[Uuid, str] = {}
    configs: dict[str, dict[str, str]] = {}
    for record in _records(files, directory / FOLDER):
        match _decoded(record):
            case TopicRecord(name=name, topic_id=topic_id):
                names[topic_id] = name
            case ConfigRecord(resource_type=2, resource_name=topic, name=name, value=None):
                configs.get(topic, {}).pop(name, None)
            case ConfigRecord(resource_type=2, resource_name=topic, name=name, value=str(value)):
                configs.setdefault(topic, {})[name] = value
            case RemoveTopicRecord(topic_id=topic_id):
                configs.pop(names.pop(topic_id, ""), None)
            case _:
                pass
    return configs


def _records(files: Files, folder: Path) -> Iterator[Record]:
    """Those of the newest snapshot, then those behind it."""
    if not files.is_dir(folder):
        return
    written = sorted(files.names(folder))
    snapshots = [name for name in written if name.endswith(".checkpoint")]
    end_offset = 0
    if snapshots:
        end_offset = int(snapshots[-1].partition("-")[0])
        yield from _batched(files.read(folder / snapshots[-1]))
    for name in written:
        if name.endswith(".log"):
            found = _batched(files.read(folder / name))
            yield from (record for record in found if record.offset >= end_offset)


def _batched(data: bytes) -> Iterator[Record]:
    for at, header in batches(data):
        if not crc_matches(data, header, at):
            return  # torn by a crash: it was never acknowledged
        if not header.is_control:
            yield from records(memoryview(data)[at:], header, LIMIT_BYTES)


def _decoded(record: Record) -> Message | None:
    found = metadata_message(record)
    return None if found is None else found.message


class MetadataMessage(NamedTuple):
    """A record's type by Kafka's name, its version, and what it says if that matters here."""

    type: str
    version: int
    message: Message | None


def metadata_message(record: Record) -> MetadataMessage | None:
    """None for a record that is none of KRaft's."""
    value = record.value or b""
    try:
        _, at = uvarint(value, 0)
        number, at = uvarint(value, at)
        version, at = uvarint(value, at)
        decode = _decoders.get(number)
        message = decode(value, at)[0] if decode else None
    except (ProtocolError, IndexError):
        return None
    return MetadataMessage(_TYPES.get(number, f"type {number}"), version, message)
