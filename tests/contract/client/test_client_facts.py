"""Our client hashes keys and classifies error codes as the Java client does."""

import random

import pytest

from peers import java
from penstock.client.errors import ALWAYS_RETRIABLE, RETRIABLE
from penstock.client.murmur2 import murmur2
from penstock.client.partitioner import keyed_partition

pytestmark = pytest.mark.peer
JARS = "clients-4.4.0"


def test_keys_hash_and_choose_partitions_as_in_java() -> None:
    dice = random.Random(7)
    keys = [dice.randbytes(size) for size in range(70) for _ in range(4)]
    keys += [b"21", b"foobar", "größe".encode(), bytes(1000), b"\xff" * 1000]
    counts = [dice.choice([1, 2, 3, 6, 50, 1000]) for _ in keys]
    lines = "".join(f"{count} {key.hex()}\n" for key, count in zip(keys, counts, strict=True))
    answers = java.run("ClientFacts", "murmur2", jars=JARS, stdin=lines).splitlines()
    assert answers == [
        f"{murmur2(key)} {keyed_partition(key, count)}"
        for key, count in zip(keys, counts, strict=True)
    ]


def test_the_java_client_retries_the_same_errors() -> None:
    java_names = set(java.run("ClientFacts", "retriable", jars=JARS).split())
    assert {code.name for code in RETRIABLE} == java_names
    assert ALWAYS_RETRIABLE < RETRIABLE
