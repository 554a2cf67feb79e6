"""Our broker and a real Kafka with the same settings, each with a plain and a SASL listener."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import force_setattr

from peers.kafka import KafkaCluster
from peers.process import free_ports
from penstock.testing.broker import EmbeddedBroker


class SecuredBroker(NamedTuple):
    """The addresses of its listeners."""

    plain: str
    sasl: str


class SecuredBrokers(NamedTuple):
    ours: SecuredBroker
    kafka: SecuredBroker


@contextmanager
def secured_brokers(
    common: Mapping[str, object], folder: Path, *, as_brokers: bool = False
) -> Iterator[SecuredBrokers]:
    """With `as_brokers`, our broker treats clients of its SASL listener as possible brokers, as
    Kafka always does.
    """
    settings: dict[str, object] = dict(common)
    cluster = KafkaCluster(settings=settings, folder=folder)
    (port,) = free_ports(1)
    plain = f"PLAINTEXT://127.0.0.1:{cluster.port(0)}"
    sasl = f"SASL_PLAINTEXT://127.0.0.1:{port}"
    settings["listeners"] = f"{plain},{sasl},CONTROLLER://127.0.0.1:{cluster._controller_ports[0]}"
    settings["advertised.listeners"] = f"{plain},{sasl}"
    settings["listener.security.protocol.map"] = (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
    )
    ours = {name: str(text) for name, text in common.items()}
    ours["listeners"] = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    with cluster, EmbeddedBroker(settings=ours) as broker:
        listeners = broker.running.state.listeners
        serving = broker.running.services.listeners
        if as_brokers:
            force_setattr(serving, "clustered", True)
            force_setattr(serving, "inter_broker_listener", "SASL_PLAINTEXT")
        try:
            yield SecuredBrokers(
                SecuredBroker(listeners["PLAINTEXT"], listeners["SASL_PLAINTEXT"]),
                SecuredBroker(cluster.bootstrap, f"127.0.0.1:{port}"),
            )
        finally:
            force_setattr(serving, "clustered", False)  # there are no other brokers to hand over to
