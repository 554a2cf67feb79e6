"""Formatted KRaft storage: Kafka's own format tool runs once per user, later nodes get copies."""

import base64
import shutil
import tempfile
import uuid
from pathlib import Path

from peers.jars import cache
from peers.servers import properties
from peers.tools import tool

BOOTSTRAP = "bootstrap.checkpoint"


def format_storage(data: Path, node: int, cluster: str, version: str) -> None:
    """Makes `data` what `kafka-storage format` would make it; a formatted one stays as it is.

    The tool takes most of a second. Of what it writes, the snapshot of feature levels is the same
    for every node of a version, and `meta.properties` is four lines.
    """
    meta = data / "meta.properties"
    if meta.exists():
        return
    data.mkdir(parents=True, exist_ok=True)
    shutil.copy(_bootstrap(version), data / BOOTSTRAP)
    identity = {"version": 1, "cluster.id": cluster, "node.id": node}
    meta.write_text(properties({**identity, "directory.id": random_uuid()}))


def _bootstrap(version: str) -> Path:
    kept = cache() / "storage" / version / BOOTSTRAP
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as part:
        config = {
            "process.roles": "broker,controller",
            "node.id": 0,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "0@127.0.0.1:9093",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "log.dirs": Path(part, "data"),
        }
        file = Path(part, "server.properties")
        file.write_text(properties(config))
        tool("kafka-storage", "format", "-t", random_uuid(), "-c", str(file), version=version)
        Path(part, "data", BOOTSTRAP).rename(kept)
    return kept


def random_uuid() -> str:
    """A UUID as Kafka writes it: 22 characters of URL-safe base 64; never one that looks like an
    option.
    """
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return random_uuid() if text.startswith("-") else text
