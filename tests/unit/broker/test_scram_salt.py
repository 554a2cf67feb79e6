"""Neither another broker nor a restart reveals whether a SCRAM user exists."""

import asyncio
from base64 import b64decode
from functools import partial
from random import Random

import pytest

from penstock.broker.net.scram_salt import salt_secret
from penstock.broker.net.scram_users import ScramParametersInUse
from penstock.clock import SystemClock
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.paths import SCRAM_SALT_SECRET
from penstock.metadata.tree import Tree
from penstock.security.scram import ScramExchange, ScramMechanism, credential, stored_text
from penstock.security.scram_parameters import ScramParameters, parameters_of, unknown_user


def test_the_secret_of_a_cluster_is_made_once() -> None:
    async def main() -> None:
        tree = Tree.in_memory(SystemClock())
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        first = await salt_secret(store, Random(1))
        assert len(first) == 32
        assert await salt_secret(store, Random(2)) == first  # as another broker, or after a restart
        await store.set(SCRAM_SALT_SECRET, b"damaged")
        assert len(await salt_secret(store, Random(3))) == 32

    asyncio.run(main())


def salt(secret: bytes, mechanism: ScramMechanism, name: str) -> str:
    exchange = ScramExchange(mechanism, lambda _: None, "nonce", secret)
    return exchange.step(f"n,,n={name},r=abc".encode()).answer.decode().split(",")[1]


def test_an_unknown_user_has_a_stable_salt_per_mechanism() -> None:
    short, long = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
    assert salt(b"s", short, "bob") == salt(b"s", short, "bob")
    found = {salt(b"s", short, "bob"), salt(b"s", long, "bob"), salt(b"s", short, "eve")}
    assert len(found) == 3
    assert all(len(each) == len("s=") + 24 for each in found)  # 16 bytes, like those of real users


def shown(found: ScramExchange, name: str) -> ScramParameters:
    """The salt and iteration count that a client naming this user receives."""
    _, salt, iterations = found.step(f"n,,n={name},r=abc".encode()).answer.decode().split(",")
    return parameters_of(b64decode(salt[2:]), int(iterations[2:]))


@pytest.mark.parametrize(
    ("salt", "iterations"),
    [
        (b"0123456789abcdef", 8192),  # penstock user create
        (b"1qn2u6rsk8v1ysj3yoxbxp8b0w", 4096),  # Kafka's tools
        (b"\xaa" * 64, 16384),  # librdkafka
    ],
)
def test_an_unknown_user_looks_like_a_known_one(salt: bytes, iterations: int) -> None:
    mechanism = ScramMechanism.SCRAM_SHA_256
    known = credential(mechanism, b"salted password", salt, iterations)
    configs = {ClientEntity("bob"): {"SCRAM-SHA-256": stored_text(known)}}
    parameters = partial(ScramParametersInUse(lambda: configs), mechanism)

    def exchange() -> ScramExchange:
        users = {"bob": known}
        return ScramExchange(mechanism, users.get, "nonce", b"secret", parameters=parameters)

    assert {shown(exchange(), name) for name in ("bob", "eve", "mallory", "trent")} == {
        ScramParameters(None if salt.isalnum() and len(salt) > 16 else len(salt), iterations)
    }


def test_a_number_is_written_as_java_writes_it() -> None:
    found = [
        unknown_user(b"s", "m", str(each), [ScramParameters(None, 4096)])[0] for each in range(200)
    ]
    assert {len(each) for each in found} >= {25, 26}
    assert all(int(each, 36) < 2**130 for each in found)
    assert all(each[:1] != b"0" for each in found)


def test_a_second_tool_changes_the_salts_of_about_half_the_unknown_users() -> None:
    one, two = ScramParameters(16, 8192), ScramParameters(None, 4096)
    names = [f"stranger-{each}" for each in range(100)]
    before = {name: unknown_user(b"s", "m", name, {one}) for name in names}
    after = {name: unknown_user(b"s", "m", name, {one, two}) for name in names}
    same = sum(before[name] == after[name] for name in names)
    assert 30 < same < 70


def test_the_choice_between_salts_stays_the_same_over_versions() -> None:
    """Brokers of two versions must choose alike, or they would show which users do not exist."""
    parameters = {ScramParameters(16, 8192), ScramParameters(None, 4096)}
    chosen = [unknown_user(b"s", "m", name, parameters)[1] for name in "abcdefgh"]
    assert chosen == [4096, 4096, 8192, 4096, 8192, 8192, 8192, 8192]
