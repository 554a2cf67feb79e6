"""Metadata older than an ISR shrink: a worker that lacks committed records must not lead by it."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from penstock.broker.startup.adoption import adopt
from penstock.clock import SystemClock
from penstock.config.sources import resolve
from penstock.local.workers.layout import Layout, write_layout
from penstock.local.workers.prepare import prepare
from penstock.log.checkpoint import write_offsets
from penstock.log.disk import DiskFiles
from penstock.log.epochs import EPOCHS
from penstock.log.inspection.adopt import adopted_topics
from penstock.log.log_dir import HIGH_WATERMARKS
from penstock.log.log_dir_owner import UNCLEAN_SHUTDOWN
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import MetaProperties, encode_meta_properties
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import encode_partition_metadata
from penstock.metadata import paths
from penstock.metadata.embedded import open_embedded
from penstock.metadata.records import PartitionState, decode, encode
from penstock.metadata.tree import FILE_NAME as STORE_FILE
from penstock.testing.logs import TOPIC_ID, batch_of
from penstock.types import BrokerId, TopicPartition

BROKERS = (1, 1001)
PARTITION = TopicPartition("t", 0)


def worker(home: Path, index: int, end: int, high_watermark: int) -> Path:
    directory = home / "logs" / f"worker.{index}"
    path = directory / str(PARTITION)
    path.mkdir(parents=True)
    identity = MetaProperties(BROKERS[index], "AAAAAAAAAAAAAAAAAAAAAA", f"directory{index}")
    (directory / META_PROPERTIES).write_bytes(encode_meta_properties(identity))
    (path / PARTITION_METADATA).write_bytes(encode_partition_metadata(TOPIC_ID))
    (path / EPOCHS).write_text("0\n1\n0 0\n")
    data = b"".join(number.to_bytes(8) + batch_of(b"v")[8:] for number in range(end))
    (path / f"{0:020d}.log").write_bytes(data)
    write_offsets(DiskFiles(), directory / HIGH_WATERMARKS, {PARTITION: high_watermark})
    return directory


async def registered(home: Path, directories: list[Path], isr: tuple[int, ...]) -> None:
    await adopt(home, adopted_topics(DiskFiles(), *directories))
    write_layout(DiskFiles(), home, Layout(workers=2))
    async with open_embedded(home / STORE_FILE, SystemClock()) as store:
        node = await store.get(paths.partition_state(PARTITION))
        state = replace(decode(PartitionState, node), isr=tuple(map(BrokerId, isr)))
        await store.set(node.path, encode(state))


@pytest.mark.parametrize(
    ("ends", "marks", "isr", "behind"),
    [
        ((5, 3), (5, 3), BROKERS, [False, True]),  # it fell behind after the backup
        ((5, 3), (5, 3), BROKERS[:1], [False, False]),  # out of sync in the metadata too
        ((5, 5), (5, 3), BROKERS, [False, False]),  # it had not learned of the high watermark yet
        ((5, 4), (4, 3), BROKERS, [False, False]),  # killed while it replicated
        ((3, 3), (90, 3), BROKERS, [False, False]),  # the checkpoint of a deleted topic
    ],
)
def test_a_worker_that_lacks_committed_records_is_marked_as_unclean(
    tmp_path: Path,
    ends: tuple[int, int],
    marks: tuple[int, int],
    isr: tuple[int, ...],
    behind: list[bool],
) -> None:
    found = [worker(tmp_path, index, ends[index], marks[index]) for index in range(2)]
    asyncio.run(registered(tmp_path, found, isr))
    config = resolve(defaults={"log.dir": str(tmp_path / "logs")}, pairs=[]).config
    assert prepare(tmp_path, config, None) == 2
    assert [(each / UNCLEAN_SHUTDOWN).exists() for each in found] == behind
