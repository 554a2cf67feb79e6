"""A real Apache Kafka: 4.3 in KRaft mode, or 3.9 on ZooKeeper."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from peers import archive
from peers.java import Profile, command
from peers.probe import live_brokers
from peers.process import Process, free_ports
from peers.servers import Servers, properties
from peers.storage import format_storage, random_uuid
from peers.zookeeper import wait_until_gone

KRAFT, ON_ZOOKEEPER = "4.3.1", "3.9.2"


class KafkaCluster(Servers):
    """`with KafkaCluster(3) as kafka: kafka.bootstrap`; brokers are numbered from 0.

    In KRaft mode each is both broker and controller. The profile `test` starts quickly and keeps
    internal topics small; `bench` leaves JVM and broker as Kafka ships them.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        zookeeper: str | None = None,
        settings: Mapping[str, object] | None = None,
        profile: Profile = "test",
        jvm: Sequence[str] = (),
        folder: Path | None = None,
        timeout_s: float = 60,
    ) -> None:
        super().__init__(folder, timeout_s)
        self.version = ON_ZOOKEEPER if zookeeper else KRAFT
        self._zookeeper, self._settings, self._profile = zookeeper, settings or {}, profile
        self._jvm = jvm
        ports = free_ports(2 * brokers)
        self._ports, self._controller_ports = ports[:brokers], ports[brokers:]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def port(self, broker: int) -> int:
        return self._ports[broker]

    def data_dir(self, broker: int) -> Path:
        """The broker's only log directory."""
        return self.folder / f"broker-{broker}" / "data"

    def start(self, *numbers: int) -> None:
        if self._zookeeper is not None:
            # A broker that is still registered from its previous run would give up at once.
            for number in numbers:
                wait_until_gone(self._zookeeper, f"/brokers/ids/{number}", self._timeout_s)
        super().start(*numbers)

    def _answers(self, number: int) -> bool:
        # Only brokers that finished their start are in the response.
        return self.running <= live_brokers(self._ports[number])

    def _prepared(self) -> dict[int, Process]:
        if self.version == KRAFT and self._profile == "test" and not self._jvm:
            _archive_classes()
        cluster = random_uuid()
        return {broker: self._process(broker, cluster) for broker in range(len(self._ports))}

    def _process(self, broker: int, cluster: str) -> Process:
        data = self.data_dir(broker)
        if self._zookeeper is None:
            config = kraft_settings(broker, self._ports, self._controller_ports)
            format_storage(data, broker, cluster, self.version)
        else:
            config = zookeeper_settings(broker, self._ports, self._zookeeper)
            data.mkdir(parents=True, exist_ok=True)
        if self._profile == "test":
            config |= SMALL
        file = data.with_name("server.properties")
        file.write_text(properties({**config, "log.dirs": data, **self._settings}))
        java = command(
            f"kafka-{self.version}",
            "kafka.Kafka",
            str(file),
            profile=self._profile,
            jvm=self._jvm,
            log_level="INFO",
        )
        return Process(f"Kafka {self.version} broker {broker}", java, file.parent)


def _archive_classes() -> None:
    """Once per user: starts and stops one broker only to archive its classes for all later ones."""
    into = archive.archive(f"kafka-{KRAFT}")
    if into.exists():
        return
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as part:
        classes = Path(part, "classes.jsa")
        with KafkaCluster(jvm=archive.write(classes), folder=Path(part)):
            pass
        if classes.exists():  # missing if the broker had to be killed on a busy machine
            classes.rename(into)


SMALL: dict[str, object] = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "zookeeper.session.timeout.ms": 4000,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "share.coordinator.state.topic.num.partitions": 5,
    "log.retention.check.interval.ms": 86_400_000,
}
"""Settings that avoid long waits: a killed broker is readmitted only when its session has expired,
and fifty partitions of an internal topic take seconds to create. The last one avoids a surprise:
retention would delete records with old timestamps every five minutes.
"""


def kraft_settings(broker: int, ports: list[int], controller_ports: list[int]) -> dict[str, object]:
    copies = min(3, len(ports))
    return {
        "process.roles": "broker,controller",
        "node.id": broker,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(
            f"{node}@127.0.0.1:{port}" for node, port in enumerate(controller_ports)
        ),
        "listeners": f"{_listener(ports[broker])},"
        f"CONTROLLER://127.0.0.1:{controller_ports[broker]}",
        "advertised.listeners": _listener(ports[broker]),
        **_copied_internal_topics(copies),
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": min(2, copies),
    }


def zookeeper_settings(broker: int, ports: list[int], connect: str) -> dict[str, object]:
    return {
        "broker.id": broker,
        "zookeeper.connect": connect,
        "listeners": _listener(ports[broker]),
        **_copied_internal_topics(min(3, len(ports))),
    }


def _listener(port: int) -> str:
    return f"PLAINTEXT://127.0.0.1:{port}"


def _copied_internal_topics(copies: int) -> dict[str, object]:
    return {
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": min(2, copies),
    }
