"""Names of partition directories."""

import pytest

from penstock.log.naming import DirectoryRole, DirName, dir_name, parse_dir_name
from penstock.types import TopicPartition

UNIQUE = "0123456789abcdef" * 2


@pytest.mark.row("A006")
@pytest.mark.parametrize(
    ("name", "topic", "partition", "role"),
    [
        ("orders-0", "orders", 0, DirectoryRole.CURRENT),
        ("tp_demo-05-12", "tp_demo-05", 12, DirectoryRole.CURRENT),
        (f"orders-3.{UNIQUE}-delete", "orders", 3, DirectoryRole.DELETE),
        (f"a.b-3.{UNIQUE}-future", "a.b", 3, DirectoryRole.FUTURE),
        (f"orders-3.{UNIQUE}-stray", "orders", 3, DirectoryRole.STRAY),
    ],
)
def test_a_directory_name_encodes_partition_and_role(
    name: str, topic: str, partition: int, role: DirectoryRole
) -> None:
    assert parse_dir_name(name) == DirName(TopicPartition(topic, partition), role)
    assert dir_name(TopicPartition(topic, partition), role, UNIQUE) == name


@pytest.mark.parametrize("name", ["orders", "-0", "orders-", "orders-x", ".lock"])
def test_other_directory_names_are_not_partitions(name: str) -> None:
    assert parse_dir_name(name) is None


def test_the_longest_topic_name_still_fits_when_its_log_is_deleted() -> None:
    name = dir_name(TopicPartition("t" * 249, 7), DirectoryRole.DELETE, UNIQUE)
    assert len(name) == 255
    found = parse_dir_name(name)
    assert found is not None
    assert found.role is DirectoryRole.DELETE
