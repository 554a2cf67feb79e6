"""A standalone broker whose log directories do not match its metadata."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.broker.app import RunningBroker, running
from penstock.broker.startup.adoption import adopt
from penstock.broker.startup.known_log_dirs import forget
from penstock.broker.startup.log_dir_ownership import StartRefused
from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic, delete_topic
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.config.sources import resolve
from penstock.errors import ConfigError
from penstock.log.disk import DiskFiles
from penstock.log.inspection.adopt import adopted_topics
from penstock.log.log_dir import RECOVERY_POINTS
from penstock.log.log_dir_owner import CLEAN_SHUTDOWN
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.metadata.backup import export_lines, import_lines
from penstock.metadata.tree import FILE_NAME
from penstock.record.batch import read_header
from penstock.replication.partition import Partition
from penstock.testing.logs import batch_of

LATER = 7


@asynccontextmanager
async def broker(home: Path, *log_dirs: Path) -> AsyncIterator[RunningBroker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": ",".join(map(str, log_dirs or (home,))),
    }
    async with running(resolve(defaults=settings, strict=True), home) as started:
        yield started


async def make(started: RunningBroker, name: str, partitions: int = 1) -> None:
    async with Client(parse_addresses(started.state.bootstrap)) as client:
        await create_topic(client, NewTopic(name=name, partitions=partitions))
    batch = batch_of(b"kept")
    started.services.replicas.partitions.get(name, 0).append(batch, read_header(batch), 1, 0)


def end_of(started: RunningBroker, name: str, index: int = 0) -> int:
    return started.services.replicas.partitions.get(name, index).log.end_offset


def test_a_broker_started_with_another_data_directory_refuses_and_changes_nothing(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        right, wrong, logs = tmp_path / "right", tmp_path / "wrong", tmp_path / "logs"
        async with broker(right, logs) as started:
            await make(started, "t")
        before = {path: path.stat().st_mtime_ns for path in logs.rglob("*")}
        with pytest.raises(StartRefused, match=r"t-0.*metadata import.*log adopt"):
            async with broker(wrong, logs):
                pass
        assert {path: path.stat().st_mtime_ns for path in logs.rglob("*")} == before
        async with broker(right, logs) as started:
            assert end_of(started, "t") == 1

    asyncio.run(main())


def test_a_stop_before_a_topic_has_its_logs_is_a_clean_shutdown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, logs, earlier = tmp_path / "home", tmp_path / "logs", tmp_path / "earlier"

    async def main() -> None:
        async with broker(home, logs) as started:
            await make(started, "old")
        shutil.copytree(logs, earlier)
        async with broker(home, logs) as started:
            await make(started, "t")
        shutil.rmtree(logs)
        earlier.rename(logs)  # as it was before the metadata had the topic
        async with broker(home, logs) as started:
            assert (end_of(started, "old"), end_of(started, "t")) == (1, 0)
        assert "in-sync replicas" not in caplog.text
        shutil.rmtree(logs / "t-0")
        async with broker(home, logs) as started:
            assert end_of(started, "t") == 0
        assert "1 in-sync replicas have no log on this broker, t-0 among them" in caplog.text

    asyncio.run(main())


@pytest.mark.parametrize("mended_by", ["import", "adopt"])
def test_metadata_older_than_a_topic_is_refused_until_it_is_repaired(
    tmp_path: Path, mended_by: str
) -> None:
    async def main() -> None:
        file = tmp_path / FILE_NAME
        async with broker(tmp_path) as started:
            await make(started, "old")
            old = list(export_lines(file))
            await make(started, "t")
            whole = list(export_lines(file))
        restored(old)
        with pytest.raises(StartRefused, match=r"1 partition \(t-0\)"):
            async with broker(tmp_path):
                pass
        if mended_by == "import":
            restored(whole)
        else:
            [adopted] = await adopt(tmp_path, adopted_topics(DiskFiles(), tmp_path))
            assert not isinstance(adopted, Exception)
            assert adopted.topic.name == "t", "the other one was registered already"
        async with broker(tmp_path) as started:
            assert (end_of(started, "old"), end_of(started, "t")) == (1, 1)

    def restored(lines: list[bytes]) -> None:
        for path in tmp_path.glob(f"{FILE_NAME}*"):
            path.unlink()
        import_lines(tmp_path / FILE_NAME, lines, SystemClock())

    asyncio.run(main())


def test_metadata_older_than_an_epoch_of_a_log_is_raised_to_it(tmp_path: Path) -> None:
    """What a leader wrote in an older one would be cut by the recovery after the next crash."""

    async def main() -> None:
        file = tmp_path / FILE_NAME
        async with broker(tmp_path) as started:
            await make(started, "t")
            old = list(export_lines(file))
            partition = started.services.replicas.partitions.get("t", 0)
            partition.lead(LATER, (1,), (1,), 1)
            append(partition)
        for path in tmp_path.glob(f"{FILE_NAME}*"):
            path.unlink()
        import_lines(file, old, SystemClock())
        async with broker(tmp_path) as started:
            partition = started.services.replicas.partitions.get("t", 0)
            assert partition.leader_epoch >= LATER
            append(partition)
        (tmp_path / CLEAN_SHUTDOWN).unlink()
        (tmp_path / RECOVERY_POINTS).unlink()
        async with broker(tmp_path) as started:
            assert end_of(started, "t") == 3

    def append(partition: Partition) -> None:
        batch = batch_of(b"kept")
        partition.append(batch, read_header(batch), 1, 0)

    asyncio.run(main())


def test_a_refused_start_leaves_a_store_into_which_a_backup_can_be_imported(tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / FILE_NAME
        async with broker(tmp_path) as started:
            await make(started, "t")
            backup = list(export_lines(file))
        for path in tmp_path.glob(f"{FILE_NAME}*"):
            path.unlink()
        with pytest.raises(StartRefused):
            async with broker(tmp_path):
                pass
        import_lines(file, backup, SystemClock())
        async with broker(tmp_path) as started:
            assert end_of(started, "t") == 1

    asyncio.run(main())


def test_a_missing_directory_is_not_replaced_by_empty_logs(tmp_path: Path) -> None:
    async def main() -> None:
        home, one, two = tmp_path / "home", tmp_path / "one", tmp_path / "two"
        async with broker(home, one, two) as started:
            await make(started, "t", partitions=2)
            places = {
                p.topic_partition.partition: p.log.log_dir.path
                for p in started.services.replicas.partitions
            }
        assert set(places.values()) == {one, two}
        (tmp_path / "two").rename(tmp_path / "away")
        with pytest.raises(StartRefused, match=rf"log forget --dir {home} {two}"):
            async with broker(home, one, two):
                pass
        with pytest.raises(ConfigError, match=f"it has used: {one}, {two}"):
            await forget(home, [tmp_path / "three"])
        await forget(home, [two])
        async with broker(home, one, two) as started:
            lengths = {places[index].name: end_of(started, "t", index) for index in (0, 1)}
            assert lengths["two"] == 0
        async with broker(home, two, one) as started:
            assert len(started.services.replicas.partitions) == 2

    asyncio.run(main())


def test_a_missing_directory_is_not_forgotten_while_another_is_offline(tmp_path: Path) -> None:
    async def main() -> None:
        home, dirs = tmp_path / "home", [tmp_path / name for name in ("one", "two", "three")]
        _, two, three = dirs
        async with broker(home, *dirs) as started:
            await make(started, "t", partitions=3)
        two.rename(tmp_path / "unmounted")
        three.rename(tmp_path / "three.bak")
        three.write_text("no directory")
        async with broker(home, *dirs) as started:
            assert len(started.services.replicas.partitions) == 1, "the others are offline"
        three.unlink()
        (tmp_path / "three.bak").rename(three)
        with pytest.raises(StartRefused, match=rf"log forget --dir {home} {two}"):
            async with broker(home, *dirs):
                pass

    asyncio.run(main())


def test_a_directory_may_move_to_another_path(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker(tmp_path / "home", tmp_path / "one") as started:
            await make(started, "t")
        (tmp_path / "one").rename(tmp_path / "two")
        async with broker(tmp_path / "home", tmp_path / "two") as started:
            assert end_of(started, "t") == 1

    asyncio.run(main())


def test_a_recreated_topic_starts_empty(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker(tmp_path) as started:
            await make(started, "t")
            async with Client(parse_addresses(started.state.bootstrap)) as client:
                await delete_topic(client, "t")
            await make(started, "t")
        async with broker(tmp_path) as started:
            assert end_of(started, "t") == 1
            assert started.services.replicas.partitions.store.count_stray() == 0

    asyncio.run(main())


@pytest.mark.parametrize("has_id", [True, False])
def test_adopted_topics_are_not_served_without_their_directory(
    tmp_path: Path, has_id: bool
) -> None:
    """They would be empty, and new records would be lost once their directory is named again."""
    kafka, home, adopted = tmp_path / "kafka", tmp_path / "home", tmp_path / "home" / "logs"

    async def main() -> None:
        async with broker(kafka) as started:
            await make(started, "t")
        meta = kafka / META_PROPERTIES
        if not has_id:  # as Kafka writes it without KRaft
            lines = meta.read_text().splitlines(keepends=True)
            meta.write_text("".join(each for each in lines if "directory.id" not in each))
        await adopt(home, adopted_topics(DiskFiles(), kafka))
        with pytest.raises(StartRefused, match=rf"t-0\) is in none of them, and {kafka}"):
            async with broker(home, adopted):
                pass
        async with broker(home, adopted, kafka) as started:
            assert end_of(started, "t") == 1

    asyncio.run(main())
