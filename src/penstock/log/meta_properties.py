"""`meta.properties`: the broker and cluster that a log directory belongs to.

A broker refuses a directory of another broker or cluster before it touches a record in it.
Version 0 (ZooKeeper mode) names a `broker.id`, version 1 (KRaft) a `node.id`; we write version 0.
"""

import re

import msgspec

from penstock.log.corrupt import CorruptFile

FILE_NAME = "meta.properties"

_NODE_ID_NAMES = {"0": "broker.id", "1": "node.id"}


class MetaProperties(msgspec.Struct, frozen=True):
    """The identity of a log directory; in version 0 each part may be missing."""

    broker_id: int | None
    cluster_id: str | None
    directory_id: str | None = None


def encode_meta_properties(identity: MetaProperties) -> bytes:
    rows = {
        "version": 0,
        "broker.id": identity.broker_id,
        "cluster.id": identity.cluster_id,
        "directory.id": identity.directory_id,
    }
    return "".join(
        f"{name}={value}\n" for name, value in rows.items() if value is not None
    ).encode()


def decode_meta_properties(data: bytes, what: str = FILE_NAME) -> MetaProperties:
    """The identity that `data` states; `CorruptFile` when it states none we understand."""
    rows = _properties(data)
    version = rows.get("version")
    if version not in _NODE_ID_NAMES:
        raise CorruptFile(what, f"has version {version!r}, neither 0 nor 1")
    node_id = rows.get(_NODE_ID_NAMES[version])
    if version == "1" and (node_id is None or "cluster.id" not in rows):
        raise CorruptFile(what, "names no node.id or no cluster.id")
    try:
        broker_id = None if node_id is None else int(node_id)
    except ValueError:
        raise CorruptFile(what, f"has {node_id!r} where a broker's number belongs") from None
    return MetaProperties(broker_id, rows.get("cluster.id"), rows.get("directory.id"))


def _properties(data: bytes) -> dict[str, str]:
    """The pairs of a Java properties file, as far as Kafka's writer uses that syntax."""
    rows = {}
    for line in data.decode("latin-1").splitlines():
        pair = line.strip()
        if pair and pair[0] not in "#!":
            name, _, value = pair.partition("=")
            rows[name.strip()] = re.sub(r"\\(.)", r"\1", value.strip())
    return rows
