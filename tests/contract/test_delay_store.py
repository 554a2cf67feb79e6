"""`penstock serve` with its due times in Redis: the password stays secret, an outage is
reported.
"""

import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from peers.process import wait_until
from peers.redis import RedisServer
from penstock.retry.address_file import read_address

pytestmark = pytest.mark.peer

PASSWORD = "open-sesame-7"
WAIT_S = 30


def readiness(folder: Path) -> str:
    address = read_address(folder)
    if address is None:
        return "no service"
    try:
        with urlopen(f"http://{address}/readyz", timeout=5) as answer:
            return str(answer.read().decode().strip())
    except HTTPError as error:
        return error.read().decode().strip()
    except OSError as error:
        return str(error)


@pytest.mark.row("A122")
def test_an_outage_of_the_store_is_reported_and_its_password_stays_secret(tmp_path: Path) -> None:
    secret = tmp_path / "secret.properties"
    secret.write_text(f"password={PASSWORD}\n")
    with RedisServer(password=PASSWORD) as redis:
        settings = {
            "config.providers": "file",
            "config.providers.file.class": (
                "org.apache.kafka.common.config.provider.FileConfigProvider"
            ),
            "penstock.delay.store": redis.url.replace(PASSWORD, f"${{file:{secret}:password}}"),
        }
        options = [f"--set={name}={value}" for name, value in settings.items()]
        with PenstockBroker(*options, folder=tmp_path) as broker:
            delay = broker.directory / "delay"
            config: dict[str, Any] = {"bootstrap.servers": broker.bootstrap}
            later = NewTopic("later", 1, config={"penstock.delay.to": "orders"})
            admin = AdminClient(config)
            for made in admin.create_topics([NewTopic("orders", 1), later]).values():
                made.result()
            wait_until(lambda: readiness(delay) == "OK", WAIT_S, "the delay service")
            producer = Producer(config)
            producer.produce("later", b"first", headers={"penstock-delay-ms": "100"})
            producer.flush(WAIT_S)
            consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
            consumer.subscribe(["orders"])
            assert values(consumer, 1) == [b"first"]
            redis.kill(0)
            producer.produce("later", b"second", headers={"penstock-delay-ms": "100"})
            producer.flush(WAIT_S)
            wait_until(lambda: readiness(delay) == "not ready: store", WAIT_S, "the outage")
            redis.output(0).write_text("")
            redis.start(0)
            assert values(consumer, 1) == [b"second"]
            wait_until(lambda: readiness(delay) == "OK", WAIT_S, "the store")
            consumer.close()
            commands = [_read(each) for each in Path("/proc").glob("[0-9]*/cmdline")]
            files = [each.read_bytes() for each in broker.directory.parent.rglob("*.json")]
            printed = broker.output(0).read_bytes()
    assert not [each for each in commands if b"penstock" in each and PASSWORD.encode() in each]
    assert PASSWORD.encode() not in printed + b"".join(files)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # the process has ended


def values(consumer: Consumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    end_s = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < end_s:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value())
    return found
