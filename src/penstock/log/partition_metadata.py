"""`partition.metadata`: the topic id that a partition's directory belongs to (KIP-516).

A topic that is deleted and created again under its name has another id; this file tells which.
"""

from penstock.log.corrupt import CorruptFile
from penstock.types import NO_UUID, Uuid, parse_uuid, uuid_text

FILE_NAME = "partition.metadata"


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes, what: str = FILE_NAME) -> Uuid:
    """The topic id; `CorruptFile` when the file does not hold one."""
    try:
        rows = dict(line.split(": ", 1) for line in data.decode().splitlines() if line)
        topic_id = parse_uuid(rows["topic_id"])
    except (ValueError, KeyError):
        raise CorruptFile(what, "holds no topic id") from None
    if rows.get("version") != "0":
        raise CorruptFile(what, f"has version {rows.get('version')!r}, not 0")
    if topic_id == NO_UUID:
        raise CorruptFile(what, "holds the id that means none")
    return topic_id
