"""Ids and directory names come from the machine's randomness, so that a simulation repeats them."""

from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from penstock.broker.handlers.consumer_group_heartbeat import new_member_id
from penstock.broker.handlers.join_group import join_group
from penstock.config.topic import TopicConfig
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.log.loading import load_logs
from penstock.log.store import LogStore
from penstock.testing.files import FakeFiles
from penstock.types import TopicPartition, Uuid, random_uuid
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.join_group import JoinGroupRequest

PARTITION = TopicPartition("orders", 0)


class Joined(Exception):
    """Raised to end a join once its member id is known."""


def context(join: Any, seed: int) -> Any:
    groups = cast("GroupCoordinator", SimpleNamespace(join=join))
    services = SimpleNamespace(
        resources=SimpleNamespace(chance=Random(seed)),
        coordination=SimpleNamespace(groups=groups),
    )
    return SimpleNamespace(
        services=services,
        header=SimpleNamespace(client_id="c"),
        peer=SimpleNamespace(host="127.0.0.1"),
        version=0,
    )


def joined_as(seed: int) -> str:
    found: list[str] = []

    def join(_group: str, wanted: Any, *_: Any, **__: Any) -> None:
        found.append(wanted.new_member_id)
        raise Joined

    with suppress(Joined):
        join_group(JoinGroupRequest(group_id="g"), context(join, seed))
    (member_id,) = found
    return member_id


def heartbeat_as(seed: int) -> str:
    return new_member_id(ConsumerGroupHeartbeatRequest(), context(None, seed))


def names_after_a_deletion(seed: int) -> list[str]:
    files, path = FakeFiles(), Path("/data/logs")
    files.make_dir(path)
    store = LogStore(files, [path], lambda _: TopicConfig(), boot_id="boot", chance=Random(seed))
    load_logs(store, 0)
    store.create(PARTITION, Uuid(bytes(range(16))), 0)
    store.set_aside(PARTITION, "is not needed")
    return files.names(path)


def test_a_classic_member_id_comes_from_the_machines_randomness() -> None:
    assert joined_as(1) == f"c-{random_uuid(Random(1))}" != joined_as(2)


def test_a_consumer_protocol_member_id_comes_from_it_too() -> None:
    assert heartbeat_as(1) == heartbeat_as(1) != heartbeat_as(2)


def test_directory_names_of_logs_set_aside_come_from_it_too() -> None:
    assert names_after_a_deletion(1) == names_after_a_deletion(1) != names_after_a_deletion(2)
