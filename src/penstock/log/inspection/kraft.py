"""Cluster metadata as KRaft keeps it: in a log of its own, `__cluster_metadata-0` (KIP-500).

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
from penstock.types import Uuid
from penstock.wire.apis import DATA_MESSAGES, METADATA_RECORDS, message_type, snake
from penstock.wire.codec import decode
from penstock.wire.json import json_fields, json_text
from penstock.wire.messages.config_record import ConfigRecord
from penstock.wire.messages.remove_topic_record import RemoveTopicRecord
from penstock.wire.messages.topic_record import TopicRecord
from penstock.wire.primitives import uvarint
from penstock.wire.schema import Message

FOLDER: Final = "__cluster_metadata-0"
LIMIT_BYTES: Final = 1 << 26


CONTROL_RECORDS: Final = {
    2: ("LeaderChange", "LeaderChangeMessage"),
    3: ("SnapshotHeader", "SnapshotHeaderRecord"),
    4: ("SnapshotFooter", "SnapshotFooterRecord"),
    5: ("KRaftVersion", "KRaftVersionRecord"),
    6: ("KRaftVoters", "VotersRecord"),
}
"""Control records of the quorum by type: their names in Kafka's dump tool, and their messages."""


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
    """The records of the newest snapshot, then the later ones."""
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
    try:
        return metadata_message(record).message
    except ProtocolError:
        return None


class MetadataMessage(NamedTuple):
    """A record's type by Kafka's name, its version, and its contents."""

    type: str
    version: int
    message: Message


def metadata_message(record: Record) -> MetadataMessage:
    """Decode a record of the metadata log; a type or version of a newer Kafka is refused."""
    value = record.value or b""
    try:
        _, at = uvarint(value, 0)
        number, at = uvarint(value, at)
        version, at = uvarint(value, at)
    except IndexError:
        raise ProtocolError("it does not tell its type and version") from None
    if number not in METADATA_RECORDS:
        raise ProtocolError(f"its type {number} is not known here")
    name = METADATA_RECORDS[number]
    return MetadataMessage(snake(name).upper(), version, _message(name, version, value[at:]))


def control_values(record: Record) -> dict[str, str]:
    """The contents of a quorum control record, under its name; empty for other records."""
    number = int.from_bytes((record.key or b"")[2:4])
    if number not in CONTROL_RECORDS:
        return {}
    shown, name = CONTROL_RECORDS[number]
    value = record.value or b""
    # Each begins with its version, which is a field as well.
    version = int.from_bytes(value[:2])
    return {shown: json_text(json_fields(_message(name, version, value), version))}


def _message(name: str, version: int, data: bytes) -> Message:
    if version > DATA_MESSAGES[name].high:
        raise ProtocolError(f"version {version} of {name} is not known here")
    return decode(message_type(name), version, data)
