"""Adoption of the logs of workers whose shared metadata is lost."""

import asyncio
from pathlib import Path

import pytest

from penstock.broker.startup.adoption import adopt
from penstock.clock import SystemClock
from penstock.log.disk import DiskFiles
from penstock.log.epochs import EPOCHS
from penstock.log.inspection.adopt import NotAdoptable, adopted_topics
from penstock.log.log_dir_owner import CLEAN_SHUTDOWN
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import MetaProperties, encode_meta_properties
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import encode_partition_metadata
from penstock.metadata import paths
from penstock.metadata.embedded import open_embedded
from penstock.metadata.image import ClusterImage
from penstock.metadata.reader import read_image
from penstock.metadata.records import ProducerIdBlock, decode
from penstock.metadata.tree import FILE_NAME
from penstock.record.batch import assign
from penstock.testing.logs import TOPIC_ID, batch_of
from penstock.types import TopicPartition

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


def log_dir(path: Path, broker: int) -> Path:
    path.mkdir(parents=True)
    (path / META_PROPERTIES).write_bytes(encode_meta_properties(MetaProperties(broker, CLUSTER)))
    return path


def partition(directory: Path, name: str, epoch: int, batches: int, torn: bytes = b"") -> None:
    path = directory / name
    path.mkdir()
    (path / PARTITION_METADATA).write_bytes(encode_partition_metadata(TOPIC_ID))
    (path / EPOCHS).write_text(f"0\n1\n{epoch} 0\n")
    data = b"".join(number.to_bytes(8) + batch_of(b"v")[8:] for number in range(batches))
    (path / f"{0:020d}.log").write_bytes(data + torn)


def written_in(epoch: int, offset: int) -> bytes:
    batch = batch_of(b"v")
    assign(batch, offset, epoch)
    return bytes(batch)


def workers(home: Path) -> list[Path]:
    return [log_dir(home / "logs" / f"worker.{i}", broker) for i, broker in enumerate((1, 1001))]


def registered(home: Path, directories: list[Path]) -> tuple[ClusterImage, int]:
    """The image and the next producer id after the adoption."""

    async def main() -> tuple[ClusterImage, int]:
        outcomes = await adopt(home, adopted_topics(DiskFiles(), *directories))
        assert not any(isinstance(each, Exception) for each in outcomes)
        async with open_embedded(home / FILE_NAME, SystemClock()) as store:
            node = await store.get(paths.LATEST_PRODUCER_ID_BLOCK)
            return await read_image(store), decode(ProducerIdBlock, node).next_start()

    return asyncio.run(main())


def test_each_partition_is_registered_with_the_worker_that_holds_it(tmp_path: Path) -> None:
    one, two = workers(tmp_path)
    partition(one, "t-0", epoch=3, batches=1)
    partition(two, "t-1", epoch=5, batches=1)
    image, _ = registered(tmp_path, [one, two])
    found = image.topics["t"].partitions
    assert {index: each.replicas for index, each in found.items()} == {0: (1,), 1: (1001,)}
    assert {index: each.leader_epoch for index, each in found.items()} == {0: 4, 1: 6}


@pytest.mark.parametrize("longest", [0, 1])
@pytest.mark.parametrize("by", ["epoch", "length"])
def test_only_the_replica_with_the_longest_log_is_in_sync(
    tmp_path: Path, longest: int, by: str
) -> None:
    both = workers(tmp_path)
    for index, directory in enumerate(both):
        best = index == longest
        if by == "epoch":
            partition(directory, "t-0", epoch=7 if best else 6, batches=1 if best else 9)
        else:
            torn = b"" if best else b"\x00" * 500
            partition(directory, "t-0", epoch=7, batches=3 if best else 2, torn=torn)
    image, _ = registered(tmp_path, both)
    found = image.partition(TopicPartition("t", 0))
    assert found is not None
    assert set(found.replicas) == {1, 1001}
    assert found.isr == (found.leader,) == ((1, 1001)[longest],)
    assert found.leader_epoch == 8


def test_an_epoch_that_was_not_flushed_before_a_crash_counts(tmp_path: Path) -> None:
    """A leader of an earlier one would append what recovery takes for damage."""
    one, two = workers(tmp_path)
    partition(one, "t-0", epoch=2, batches=2)
    partition(two, "t-0", epoch=3, batches=1)
    rolled = one / "t-0" / f"{2:020d}.log"
    rolled.write_bytes(written_in(5, 2) + b"\x00" * 500)
    (one / "t-0" / f"{3:020d}.log").touch()
    image, _ = registered(tmp_path, [one, two])
    found = image.partition(TopicPartition("t", 0))
    assert found is not None
    assert (found.leader, found.leader_epoch) == (1, 6)


def test_after_a_clean_stop_the_listed_epochs_are_all(tmp_path: Path) -> None:
    one, _ = workers(tmp_path)
    partition(one, "t-0", epoch=2, batches=2)
    (one / CLEAN_SHUTDOWN).touch()
    (one / "t-0" / f"{2:020d}.log").write_bytes(written_in(5, 2))
    found = adopted_topics(DiskFiles(), one)
    assert found.topics[0].partitions[0].last_epoch == 2


def test_a_worker_is_adopted_beside_a_registered_one(tmp_path: Path) -> None:
    """As when the metadata is older than a topic of the second worker."""
    one, two = workers(tmp_path)
    partition(one, "old-0", epoch=0, batches=1)
    partition(two, "new-0", epoch=0, batches=1)
    registered(tmp_path, [one])
    image, _ = registered(tmp_path, [two])
    assert image.topics.keys() == {"old", "new"}


def test_brokers_that_are_not_workers_are_not_adopted_together(tmp_path: Path) -> None:
    one, two = log_dir(tmp_path / "one", 1), log_dir(tmp_path / "two", 2)
    with pytest.raises(NotAdoptable, match="belong to more than one broker: 1, 2"):
        adopted_topics(DiskFiles(), one, two)


def test_producer_ids_in_the_logs_are_not_allocated_again(tmp_path: Path) -> None:
    one, two = workers(tmp_path)
    partition(one, "t-0", epoch=0, batches=1)
    before = SystemClock().now_ms()
    _, first = registered(tmp_path, [one])
    assert first > before
    partition(two, "u-0", epoch=0, batches=1)
    _, second = registered(tmp_path, [two])
    assert second >= first
