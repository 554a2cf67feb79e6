"""Workers of Kafka Connect in distributed mode, which share connectors through a group."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from peers.java import command
from peers.process import Process, free_ports
from peers.servers import Servers, properties

JARS = "connect-4.3.1"
STRING = "org.apache.kafka.connect.storage.StringConverter"
KEPT = ("config", "offset", "status")
OFTEN = ("emit.checkpoints", "refresh.groups", "refresh.topics", "sync.group.offsets")
"""MirrorMaker's pauses between two looks at its clusters."""
"""What workers store in topics."""


class ConnectCluster(Servers):
    """`with ConnectCluster(bootstrap, 2) as connect: connect.put("name", {...})`."""

    def __init__(
        self,
        bootstrap: str,
        workers: int = 1,
        *,
        settings: Mapping[str, object] | None = None,
        folder: Path | None = None,
        timeout_s: float = 60,
    ) -> None:
        super().__init__(folder, timeout_s)
        self._bootstrap, self._settings = bootstrap, settings or {}
        self._ports = free_ports(workers)

    def put(self, name: str, settings: Mapping[str, object]) -> None:
        """Creates or changes the connector."""
        body = {key: str(value) for key, value in settings.items()}
        self._ask("PUT", f"/connectors/{name}/config", body)

    def states(self, name: str) -> list[str]:
        """The states of the connector and its tasks; empty while the connector is unknown."""
        try:
            reported = self._status(name)
        except OSError:
            return []
        return [reported["connector"]["state"], *(each["state"] for each in reported["tasks"])]

    def runs(self, name: str) -> bool:
        """Whether the connector and its one task are running."""
        return self.states(name) == ["RUNNING", "RUNNING"]

    def worker_of(self, name: str) -> int:
        """The worker that runs the connector's first task."""
        port = int(self._status(name)["tasks"][0]["worker_id"].rpartition(":")[2])
        return self._ports.index(port)

    def _answers(self, number: int) -> bool:
        try:
            _asked(self._ports[number], "GET", "/connectors")
        except OSError:
            return False
        return True

    def _status(self, name: str) -> Any:
        return self._ask("GET", f"/connectors/{name}/status")

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        return _asked(self._ports[min(self.running)], method, path, body)

    def _prepared(self) -> dict[int, Process]:
        return {number: self._process(number) for number in range(len(self._ports))}

    def _process(self, number: int) -> Process:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "group.id": "connect",
            "listeners": f"http://127.0.0.1:{self._ports[number]}",
            "key.converter": STRING,
            "value.converter": STRING,
            **{f"{each}.storage.topic": f"connect-{each}" for each in KEPT},
            **{f"{each}.storage.replication.factor": 1 for each in KEPT},
            "offset.storage.partitions": 2,
            "status.storage.partitions": 1,
            "offset.flush.interval.ms": 300,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "scheduled.rebalance.max.delay.ms": 0,
            "reconnect.backoff.max.ms": 100,
            **self._settings,
        }
        folder = self.folder / f"worker-{number}"
        return _program("cli.ConnectDistributed", properties(settings), folder)


def mirror(source: str, target: str, topics: str, folder: Path) -> Process:
    """MirrorMaker 2, which copies the topics that match the pattern as `source.TOPIC`; not started
    yet.
    """
    internal = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic")
    settings = {
        "clusters": "source, target",
        "source.bootstrap.servers": source,
        "target.bootstrap.servers": target,
        "source->target.enabled": "true",
        "source->target.topics": topics,
        "replication.factor": 1,
        **{f"{each}.replication.factor": 1 for each in internal},
        **{f"{each}.storage.replication.factor": 1 for each in KEPT},
        **{f"{each}.interval.seconds": 1 for each in OFTEN},
        "sync.group.offsets.enabled": "true",
        "offset.lag.max": 0,
    }
    return _program("mirror.MirrorMaker", properties(settings), folder)


def mirror_by_file(settings: str, folder: Path) -> Process:
    """MirrorMaker 2 with this settings file and shorter pauses; not started yet."""
    often: dict[str, object] = {f"{each}.interval.seconds": 1 for each in OFTEN}
    return _program("mirror.MirrorMaker", settings + properties(often), folder)


def _program(main: str, settings: str, folder: Path) -> Process:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "settings.properties"
    file.write_text(settings)
    java = command(JARS, f"org.apache.kafka.connect.{main}", str(file), log_level="INFO")
    return Process(main, java, folder)


def _asked(port: int, method: str, path: str, body: object = None) -> Any:
    """Raises OSError if there is no successful response (yet)."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        reported = answer.read()
    except HTTPException as error:
        raise OSError(f"{method} {path}: {error}") from error
    finally:
        connection.close()
    if answer.status >= 300:
        raise OSError(f"{method} {path}: {answer.status} {reported.decode(errors='replace')}")
    return json.loads(reported)
