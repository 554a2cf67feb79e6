"""A data directory is resized for one, three and two workers, with a crash at every step."""

import asyncio
import shutil
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from penstock.broker.startup.adoption import adopt
from penstock.broker.startup.known_log_dirs import forget
from penstock.clock import SystemClock
from penstock.config.authorization import KNOWN_AUTHORIZERS
from penstock.config.broker import BrokerConfig
from penstock.config.sources import resolve
from penstock.errors import ConfigError
from penstock.local.workers.layout import FILE_NAME, folder, read_layout
from penstock.local.workers.prepare import prepare
from penstock.local.workers.serve import check_start
from penstock.log import checkpoint
from penstock.log.disk import DiskFiles
from penstock.log.disk_file import DiskFile
from penstock.log.epochs import EPOCHS, EpochStart, LeaderEpochs
from penstock.log.inspection.adopt import adopted_topics
from penstock.log.log_dir import CLEANER_OFFSETS, LOG_STARTS, RECOVERY_POINTS
from penstock.log.log_dir_owner import CLEAN_SHUTDOWN
from penstock.log.meta_properties import decode_meta_properties
from penstock.metadata.backup import export_lines, import_lines
from penstock.metadata.tree import FILE_NAME as STORE_FILE
from penstock.testing.broker import EmbeddedBroker
from penstock.types import TopicPartition

PARTITIONS = [TopicPartition("t", index) for index in range(7)] + [
    TopicPartition(f"single{index}", 0) for index in range(3)
]


class Died(Exception):
    """The process was killed here."""


class Dying(DiskFiles):
    """Dies before its nth change."""

    def __init__(self, lives: int) -> None:
        super().__init__()
        self.lives = lives

    def _step(self) -> None:
        if self.lives == 0:
            raise Died
        self.lives -= 1

    def open(self, path: Path, *, create: bool = False) -> DiskFile:
        if create and path.name != ".lock":
            self._step()
        return super().open(path, create=create)

    def make_dir(self, path: Path) -> None:
        if not path.exists():
            self._step()
        super().make_dir(path)

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)

    def remove_dir(self, path: Path) -> None:
        self._step()
        super().remove_dir(path)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a standalone broker with some topics."""
    home = tmp_path_factory.mktemp("home")
    with EmbeddedBroker(directory=home) as broker:
        broker.create_topic("t", 7)
        for index in range(3):
            broker.create_topic(f"single{index}", 1)
    return home


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    return copied(template, tmp_path / "home")


def copied(template: Path, home: Path) -> Path:
    """A copy with a file in each partition, and a row per partition in the checkpoint files."""
    shutil.copytree(template, home)
    logs = home / "logs"
    for each in PARTITIONS:
        (logs / str(each) / "mark").write_text(str(each))
    rows = {each: 100 + index for index, each in enumerate(PARTITIONS)}
    for name in (LOG_STARTS, RECOVERY_POINTS):
        checkpoint.write_offsets(DiskFiles(), logs / name, rows)
    return home


def config(home: Path, **settings: str) -> BrokerConfig:
    pairs = [f"{name.replace('_', '.')}={text}" for name, text in settings.items()]
    return resolve(defaults={"log.dir": str(home / "logs")}, pairs=pairs).config


def held(home: Path, workers: int) -> dict[int, set[str]]:
    """The partitions of each worker; asserts that each is there once, with its checkpoint rows."""
    logs = home / "logs"
    folders = [logs] if workers == 1 else [folder(logs, worker) for worker in range(workers)]
    assert {each.name for each in logs.glob("worker.*")} == (
        set() if workers == 1 else {each.name for each in folders}
    )
    found: dict[int, set[str]] = {}
    for worker, path in enumerate(folders):
        found[worker] = {each.name for each in path.iterdir() if each.is_dir()}
        for name in (LOG_STARTS, RECOVERY_POINTS):
            rows = checkpoint.read_offsets(DiskFiles(), path / name)
            for index, each in enumerate(PARTITIONS):
                if str(each) in found[worker]:
                    assert (path / str(each) / "mark").read_text() == str(each)
                    assert rows[each] == 100 + index
    assert sorted(name for names in found.values() for name in names) == sorted(
        map(str, PARTITIONS)
    )
    return found


def ids(home: Path, workers: int) -> list[int | None]:
    logs = home / "logs"
    folders = [logs] if workers == 1 else [folder(logs, worker) for worker in range(workers)]
    return [
        decode_meta_properties((each / "meta.properties").read_bytes()).broker_id
        for each in folders
    ]


def test_one_worker_becomes_three_then_two_then_one(home: Path) -> None:
    assert prepare(home, config(home), 3) == 3
    assert sorted(map(len, held(home, 3).values())) == [3, 3, 4]
    assert ids(home, 3) == [1, 1001, 1002]
    assert prepare(home, config(home), 2) == 2
    assert sorted(map(len, held(home, 2).values())) == [5, 5]
    assert ids(home, 2) == [1, 1001]
    assert prepare(home, config(home), None) == 2
    assert prepare(home, config(home), 1) == 1
    held(home, 1)
    assert ids(home, 1) == [1]
    with EmbeddedBroker(directory=home) as broker:
        image = broker.running.services.cluster.image
        assert all(
            partition.replicas == (1,)
            for topic in image.topics.values()
            for partition in topic.partitions.values()
        )


def backup_of(home: Path) -> list[bytes]:
    return list(export_lines(home / STORE_FILE))


def restore(home: Path, backup: list[bytes]) -> None:
    for each in home.glob(f"{STORE_FILE}*"):
        each.unlink()
    import_lines(home / STORE_FILE, backup, SystemClock())


def start(home: Path) -> None:
    """Starts as `penstock serve` does. Workers are checked before they start; a standalone broker
    checks itself.
    """
    if prepare(home, config(home), None) == 1:
        with EmbeddedBroker(directory=home):
            pass


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2)])
def test_a_metadata_backup_from_before_partitions_moved_is_refused(
    home: Path, before: int, after: int
) -> None:
    """The partitions would be empty where the backup places them, and their logs would be
    strays.
    """
    prepare(home, config(home), before)
    backup = backup_of(home)
    prepare(home, config(home), after)
    restore(home, backup)
    with pytest.raises(ConfigError, match="older than the logs"):
        start(home)
    held(home, after)


@pytest.mark.parametrize("is_newer", [False, True])
def test_a_metadata_backup_from_before_an_election_is_refused(home: Path, is_newer: bool) -> None:
    """The backup's ISR may name a replica that lacks records; the others would truncate theirs."""
    prepare(home, config(home), 2)
    (only,) = (home / "logs").glob("worker.*/t-0")
    (other,) = set(range(2)) - {int(only.parent.name[-1])}
    copy = shutil.copytree(only, folder(home / "logs", other) / "t-0")
    (copy / EPOCHS).write_bytes(LeaderEpochs([EpochStart(9 if is_newer else 0, 0)]).encode())
    if is_newer:
        with pytest.raises(ConfigError, match=r"t-0\) is in a later leader epoch .*log adopt"):
            prepare(home, config(home), None)
    else:
        assert prepare(home, config(home), None) == 2


def test_a_log_directory_can_be_added_to_workers(home: Path) -> None:
    prepare(home, config(home), 2)
    added = home / "added"
    assert prepare(home, config(home, log_dirs=f"{home / 'logs'},{added}"), None) == 2
    stated = [folder(added, worker) / "meta.properties" for worker in range(2)]
    assert [decode_meta_properties(each.read_bytes()).broker_id for each in stated] == [1, 1001]


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_worker_whose_folder_is_forgotten_keeps_its_id(home: Path, after: int) -> None:
    """With another id, its partitions would stay without a leader."""
    prepare(home, config(home), 2)
    lost = folder(home / "logs", 1)
    shutil.rmtree(lost)
    with pytest.raises(ConfigError, match="log forget"):
        prepare(home, config(home), after)
    asyncio.run(forget(home, [lost]))
    assert prepare(home, config(home), after) == after
    assert ids(home, after) == [1, 1001, 1002][:after]
    assert prepare(home, config(home), 1) == 1
    with EmbeddedBroker(directory=home) as broker:
        image = broker.running.services.cluster.image
        assert {
            partition.replicas
            for topic in image.topics.values()
            for partition in topic.partitions.values()
        } == {(1,)}


@pytest.mark.parametrize(("before", "after", "instead"), [(1, 3, 2), (3, 2, 3), (3, 1, 1)])
@pytest.mark.pure
def test_a_crash_at_any_step_loses_nothing(
    before: int, after: int, instead: int, template: Path, tmp_path: Path
) -> None:
    """The next start may request another number of workers than the unfinished one."""
    base = copied(template, tmp_path / "base")
    prepare(base, config(base), before)
    for lives in crashes():
        home = tmp_path / f"{lives}"
        shutil.copytree(base, home)
        try:
            prepare(home, config(home), after, files=Dying(lives))
        except Died:
            assert prepare(home, config(home), instead) == instead
            held(home, instead)
            assert read_layout(home).resize is None
        else:
            held(home, after)
            break


def crashes() -> Iterator[int]:
    yield from range(200)
    raise AssertionError("it never ends")


@pytest.mark.pure
def test_a_second_crash_while_completing_loses_nothing(home: Path) -> None:
    lives = 12
    while True:
        try:
            prepare(home, config(home), 3, files=Dying(lives))
        except Died:
            lives += 1
        else:
            break
    held(home, 3)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_what_a_worker_knew_of_a_former_topic_does_not_apply_to_a_new_one(
    home: Path, is_damaged: bool
) -> None:
    """Old values of a key that was deleted would be back once its tombstone is gone."""
    assert prepare(home, config(home), 2) == 2
    logs, files = home / "logs", DiskFiles()
    before = held(home, 2)
    for worker in (0, 1):
        path = folder(logs, worker) / CLEANER_OFFSETS
        rows = {each: 1000 for each in PARTITIONS if str(each) not in before[worker]}
        checkpoint.write_offsets(files, path, rows)
        if is_damaged and worker == 1:
            path.write_text("damaged")
    assert prepare(home, config(home), 1) == 1
    rows = checkpoint.read_offsets(files, logs / CLEANER_OFFSETS)
    assert not {each for each in rows if str(each) in before[1]}


def test_an_unclean_shutdown_stays_unclean_for_all_workers(home: Path) -> None:
    (home / "logs" / CLEAN_SHUTDOWN).unlink()
    prepare(home, config(home), 2)
    assert not list((home / "logs").glob(f"worker.*/{CLEAN_SHUTDOWN}"))


def test_a_clean_shutdown_stays_clean_for_all_workers(home: Path) -> None:
    prepare(home, config(home), 2)
    assert len(list((home / "logs").glob(f"worker.*/{CLEAN_SHUTDOWN}"))) == 2


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {
                "listeners": "PLAINTEXT://:9092,EXTRA://:9093",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT",
            },
            "move the listeners apart",
        ),
        ({"listeners": "PLAINTEXT://:65535"}, "leaves no 2 ports behind it"),
        ({"advertised.listeners": "PLAINTEXT://a:1-3"}, "has 3 ports for 2 workers"),
        (
            {"authorizer.class.name": KNOWN_AUTHORIZERS[0], "super.users": "User:admin"},
            "add it to super.users, and let nobody else reach the listener PLAINTEXT",
        ),
    ],
)
def test_settings_that_workers_do_not_support_change_nothing(
    home: Path, settings: dict[str, str], says: str
) -> None:
    before = sorted(home.rglob("*"))
    with pytest.raises(ConfigError, match=says):
        prepare(home, config(home, **settings), 2)
    assert sorted(home.rglob("*")) == before
    assert prepare(home, config(home, **settings), 1) == 1


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:TAKEN"}, "listeners: cannot listen on 127.0.0.1"),
        ({"penstock.http.listen": "127.0.0.1:TAKEN"}, "penstock.http.listen: cannot listen on"),
        (
            {
                "listeners": "SSL://127.0.0.1:0",
                "security.inter.broker.protocol": "SSL",
                "ssl.keystore.location": "nowhere.pem",
            },
            "ssl.keystore.location: cannot read nowhere.pem",
        ),
    ],
)
def test_an_error_that_prevents_the_start_changes_nothing(
    home: Path, settings: dict[str, str], says: str, before: int, after: int
) -> None:
    prepare(home, config(home), before)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        pairs = [f"{name}={text.replace('TAKEN', port)}" for name, text in settings.items()]
        resolved = resolve(defaults={"log.dir": str(home / "logs")}, pairs=pairs)
        with pytest.raises(ConfigError, match=says):
            prepare(home, resolved.config, after, partial(check_start, resolved))
    held(home, before)
    assert read_layout(home).workers == before


@pytest.mark.parametrize(
    "settings",
    [{"super.users": "User:admin;User:ANONYMOUS"}, {"allow.everyone.if.no.acl.found": "true"}],
)
def test_acls_may_let_workers_connect_to_each_other(home: Path, settings: dict[str, str]) -> None:
    acls = {"authorizer.class.name": KNOWN_AUTHORIZERS[0], **settings}
    assert prepare(home, config(home, **acls), 2) == 2


def test_folders_of_workers_without_their_layout_are_refused(home: Path) -> None:
    prepare(home, config(home), 2)
    (home / FILE_NAME).unlink()
    for workers in (1, 2):
        with pytest.raises(ConfigError, match=r"worker.0 is a worker's, but .*workers.json knows"):
            prepare(home, config(home), workers)


def test_a_log_directory_that_is_no_longer_named_is_refused(home: Path, tmp_path: Path) -> None:
    prepare(home, config(home), 2)
    with pytest.raises(ConfigError, match=r"10 partitions .* in none of them, and .*worker.0"):
        prepare(home, config(home, log_dirs=str(tmp_path / "elsewhere")), 2)


def test_logs_unknown_to_the_metadata_are_refused(home: Path) -> None:
    (home / "logs" / "unknown-0").mkdir()
    with pytest.raises(ConfigError, match=r"1 partition \(unknown-0\)"):
        prepare(home, config(home), 2)
    assert read_layout(home).workers == 1


def test_a_directory_that_is_no_partition_is_refused(home: Path) -> None:
    (home / "logs" / "something").mkdir()
    with pytest.raises(ConfigError, match="something is not the directory of a partition"):
        prepare(home, config(home), 2)


def test_a_directory_in_use_is_left_alone(home: Path) -> None:
    with EmbeddedBroker(directory=home), pytest.raises(ConfigError, match="in use"):
        prepare(home, config(home), 2)
    assert not list((home / "logs").glob("worker.*"))


def test_a_log_directory_that_is_a_file_is_refused(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(
        ConfigError, match=r"log.dirs: they cannot be laid out for 2 workers: .*file"
    ):
        prepare(tmp_path, config(home, log_dirs=str(file)), 2)


def test_a_layout_of_a_newer_version_is_refused(home: Path) -> None:
    (home / FILE_NAME).write_text('{"version": 2}')
    with pytest.raises(ConfigError, match="newer version of penstock"):
        prepare(home, config(home), 2)


def test_on_zookeeper_a_worker_with_partitions_cannot_be_removed(home: Path) -> None:
    """Other brokers may run, and only their controller may move partitions."""
    prepare(home, config(home), 2)
    cluster = config(home, zookeeper_connect="127.0.0.1:2181")
    with pytest.raises(ConfigError, match="belongs to a worker that would go"):
        prepare(home, cluster, 1)
    assert prepare(home, cluster, 3) == 3
    assert prepare(home, cluster, 2) == 2
    held(home, 2)


def test_a_new_worker_gets_an_unused_id_when_the_metadata_is_lost(home: Path) -> None:
    prepare(home, config(home), 2)
    for each in home.glob(f"{STORE_FILE}*"):
        each.unlink()
    folders = [folder(home / "logs", worker) for worker in range(2)]
    asyncio.run(adopt(home, adopted_topics(DiskFiles(), *folders)))
    assert prepare(home, config(home), 3) == 3
    assert ids(home, 3) == [1, 1001, 1002]
    held(home, 3)


@pytest.mark.parametrize("file", ["partition.metadata", f"{0:020d}.log"])
def test_partitions_that_no_worker_would_serve_are_refused(
    home: Path, tmp_path: Path, file: str
) -> None:
    """For example partitions of Kafka, whose directory was added."""
    prepare(home, config(home), 2)
    added = tmp_path / "added"
    (added / "u-0").mkdir(parents=True)
    (added / "u-0" / file).touch()
    with pytest.raises(ConfigError, match=r"added/u-0 would not be served"):
        prepare(home, config(home, log_dirs=f"{home / 'logs'},{added}"), 2)
    assert list(added.iterdir()) == [added / "u-0"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("backup-20251101", "backup.log"),
        ("penstock-1", "penstock.log"),
        ("__cluster_metadata-0", f"{0:020d}.log"),
        (f"t-0.{'0' * 32}-delete", f"{0:020d}.log"),
        (f"t-0.{'0' * 32}-stray", "partition.metadata"),
    ],
)
def test_a_folder_that_only_looks_like_a_partition_is_not_changed(
    home: Path, name: str, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    prepare(home, config(home), 2)
    other = home / "logs" / name
    other.mkdir()
    (other / file).touch()
    assert prepare(home, config(home), 2) == 2
    assert f"{other} is left as it is: no worker serves it" in caplog.text
    assert list(other.iterdir()) == [other / file]
    held(home, 2)
