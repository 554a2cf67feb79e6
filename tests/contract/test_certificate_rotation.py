"""Certificates are rotated while clients work, and no request fails."""

import ssl
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeAlias

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import KeyFiles, certified, served_certificate

ROTATIONS = 3
Settings: TypeAlias = dict[str, Any]


def test_certificates_rotate_under_load_without_a_failed_request(tmp_path: Path) -> None:
    keys = [certified(tmp_path, f"key-{number}") for number in range(1 + ROTATIONS)]
    trusted = tmp_path / "trusted.pem"
    trusted.write_text("".join(each.certificate.read_text() for each in keys))
    store = tmp_path / "store.pem"
    store.write_text(keys[0].pem)
    listeners = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
    broker_settings = {"listeners": listeners, "ssl.keystore.location": str(store)}
    failed: list[str] = []
    with EmbeddedBroker(settings=broker_settings) as broker:
        address = broker.running.state.listeners["SSL"]
        settings: Settings = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(trusted),
            "error_cb": lambda error: failed.append(error.str()),
            "log_level": 0,
        }
        admin = AdminClient(settings)
        (created,) = admin.create_topics([NewTopic("t", 1, 1)]).values()
        created.result(20)
        stop = Event()
        threads = [
            Thread(target=work, args=(settings, stop, failed))
            for work in (keep_producing, keep_connecting)
        ]
        for each in threads:
            each.start()
        try:
            for new in keys[1:]:
                store.write_text(new.key.read_text())  # as if the file were copied in two steps
                time.sleep(0.2)
                store.write_text(new.pem)
                wait_for(address, new)
        finally:
            stop.set()
            for each in threads:
                each.join(30)
        assert failed == []
        consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        assert consumer.consume(1, 20)
        consumer.close()


def note_failure(failed: list[str], error: object, _: object) -> None:
    if error is not None:
        failed.append(str(error))


def keep_producing(settings: Settings, stop: Event, failed: list[str]) -> None:
    """Produces over one connection that stays open."""
    delivered = partial(note_failure, failed)
    producer = Producer({**settings, "linger.ms": 0})
    while not stop.is_set():
        producer.produce("t", b"x", on_delivery=delivered)
        producer.poll(0.01)
    if producer.flush(20):
        failed.append("records are not delivered")


def keep_connecting(settings: Settings, stop: Event, failed: list[str]) -> None:
    """Opens new clients with new connections all the time."""
    delivered = partial(note_failure, failed)
    while not stop.is_set():
        producer = Producer(settings)
        producer.produce("t", b"y", on_delivery=delivered)
        if producer.flush(20):
            failed.append("a new client's record is not delivered")


def wait_for(address: str, keys: KeyFiles) -> None:
    deadline = time.monotonic() + 10
    while True:
        with suppress(ssl.SSLCertVerificationError):
            served_certificate(address, keys)
            return
        assert time.monotonic() < deadline, "the new certificate is not used"
        time.sleep(0.05)
