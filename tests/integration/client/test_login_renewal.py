"""Our clients reauthenticate before their session expires, on the same connection (KIP-368)."""

import asyncio
import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from penstock.client.address import Address
from penstock.client.connection import connect
from penstock.client.sasl import ClientAuthenticationFailed, Login
from penstock.spark.client.connection import connect as connect_blocking
from penstock.spark.client.security import Security
from penstock.spark.client.settings import ClientSettings
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LIFETIME_MS = 1500
"""A client may reauthenticate once a second."""
LOGIN = Login("PLAIN", "a", "secret")


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_a="secret";',
        "connections.max.reauth.ms": str(LIFETIME_MS),
    }
    with EmbeddedBroker(settings=settings) as broker:
        yield broker


def address(broker: EmbeddedBroker) -> Address:
    host, _, port = broker.bootstrap.rpartition(":")
    return Address(host, int(port))


def test_the_asynchronous_client_reauthenticates(broker: EmbeddedBroker) -> None:
    async def ask(connection_deadline: float) -> int:
        connection = await connect(address(broker), client_id="c", login=LOGIN)
        count = 0
        while time.monotonic() < connection_deadline:
            calls = [
                connection.call(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=5000),
                connection.send(MetadataRequest(topics=[]), MetadataResponse),
            ]
            async with asyncio.timeout(10):
                for each in calls:
                    assert isinstance(await each, MetadataResponse)
            count += 2
            await asyncio.sleep(0.01)
        await connection.close()
        return count

    assert asyncio.run(ask(time.monotonic() + 2 * LIFETIME_MS / 1000)) > 20


def test_a_request_sent_during_reauthentication_waits(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        connection = await connect(address(broker), client_id="c", login=LOGIN)
        await asyncio.sleep(1.4)
        async with asyncio.TaskGroup() as tasks:
            asked = [
                tasks.create_task(
                    connection.call(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=5000)
                )
                for _ in range(10)
            ]
        assert all(isinstance(each.result(), MetadataResponse) for each in asked)
        assert connection.is_open
        await connection.close()

    asyncio.run(main())


def test_passwords_are_hashed_off_the_loop(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that demands a million iterations must not block everything else."""
    hashed: list[int] = []

    def noted(*_: object) -> bytes:
        hashed.append(threading.get_ident())
        return bytes(64)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", noted)

    async def main() -> None:
        login = Login("SCRAM-SHA-512", "nobody", "x")
        with pytest.raises(ClientAuthenticationFailed):
            await connect(address(broker), client_id="c", login=login)

    asyncio.run(main())
    assert hashed
    assert threading.get_ident() not in hashed


def test_the_connection_of_sparks_workers_reauthenticates(broker: EmbeddedBroker) -> None:
    settings = ClientSettings((address(broker),), security=Security(login=LOGIN))
    deadline = time.monotonic() + 2 * LIFETIME_MS / 1000
    with closing(connect_blocking(address(broker), settings)) as connection:
        while time.monotonic() < deadline:
            ahead = [connection.send(MetadataRequest(topics=[]), MetadataResponse) for _ in "ab"]
            for each in ahead:
                assert isinstance(connection.receive(each), MetadataResponse)
            time.sleep(0.01)
        assert connection.is_open
