"""`penstock log` through click's runner, over directories that our own log wrote."""

import asyncio
import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.clock import SystemClock
from penstock.config.topic import TopicConfig
from penstock.log.disk import DiskFiles
from penstock.log.log_dir import LogDir
from penstock.log.meta_properties import MetaProperties, encode_meta_properties
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.partition_metadata import encode_partition_metadata
from penstock.log.recovery import load_log
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.image import ClusterImage
from penstock.metadata.reader import read_image
from penstock.metadata.tree import FILE_NAME, Tree
from penstock.record.batch import read_header
from penstock.record.build import build_batch
from penstock.record.control import build_marker
from penstock.record.record import Record
from penstock.record.stamp import seal
from penstock.types import TopicPartition, Uuid, uuid_text
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.group_metadata_key import GroupMetadataKey
from penstock.wire.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from penstock.wire.messages.offset_commit_key import OffsetCommitKey
from penstock.wire.messages.offset_commit_value import OffsetCommitValue
from penstock.wire.messages.transaction_log_key import TransactionLogKey
from penstock.wire.messages.transaction_log_value import TransactionLogValue
from support.commands.kafka_tool import call_tool

NOW = 1_700_000_000_000
TOPIC_ID = Uuid(bytes(range(16)))
FIRST = "00000000000000000000"


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["log", *map(str, args)])


def append(log: PartitionLog, batch: bytearray, *, from_client: bool = True) -> None:
    log.append_as_leader(batch, read_header(batch), 0, NOW, from_client=from_client)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log directory with one partition: plain batches, an aborted transaction, two segments."""
    data = tmp_path / "data"
    partition = data / "orders-0"
    partition.mkdir(parents=True)
    (data / "meta.properties").write_bytes(encode_meta_properties(MetaProperties(1, "cluster")))
    (data / ".kafka_cleanshutdown").touch()
    (partition / "partition.metadata").write_bytes(encode_partition_metadata(TOPIC_ID))
    files = DiskFiles()
    log = load_log(
        files,
        LogDir(files, data),
        partition,
        TopicPartition("orders", 0),
        TopicConfig(index_interval_bytes=10),
        open_segments=OpenSegments(),
        recovery_point=0,
        log_start_offset=0,
        clean=False,
        now_ms=NOW,
    )
    for number in range(4):
        append(log, build_batch([Record(0, NOW + number, b"k%d" % number, b"v", [("h", b"1")])]))
    append(
        log,
        build_batch(
            [Record(0, NOW + 9, b"k", None, [])],
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        ),
    )
    marker = build_marker(
        producer_id=7, producer_epoch=0, committed=False, coordinator_epoch=3, timestamp=NOW + 10
    )
    append(log, marker, from_client=False)
    log.roll(NOW)
    append(log, build_batch([Record(0, NOW + 11, b"k", b"last", [])]))
    log.close()
    return data


def make_partition(directory: Path) -> None:
    directory.mkdir(parents=True)
    (directory / "partition.metadata").write_bytes(encode_partition_metadata(TOPIC_ID))


def file(data: Path, name: str) -> Path:
    return data / "orders-0" / name


def damage(path: Path, at: int) -> None:
    contents = bytearray(path.read_bytes())
    contents[at] ^= 1
    path.write_bytes(contents)


def test_dump_shows_batches(data: Path) -> None:
    result = run("dump", file(data, f"{FIRST}.log"))
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == f"Dumping {file(data, f'{FIRST}.log')}"
    assert lines[1] == "Log starting offset: 0"
    assert lines[2].startswith("baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1")
    assert f"position: 0 CreateTime: {NOW} size: 75 magic: 2 compresscodec: none" in lines[2]
    assert lines[2].endswith("isvalid: true")
    assert len(lines) == 8


def test_dump_shows_records_and_markers(data: Path) -> None:
    shown = run("dump", "--print-data-log", file(data, f"{FIRST}.log")).stdout.splitlines()
    assert (
        f"| offset: 0 CreateTime: {NOW} keySize: 2 valueSize: 1 sequence: -1 headerKeys: [h] "
        "key: k0 payload: v" in shown
    )
    assert (
        f"| offset: 4 CreateTime: {NOW + 9} keySize: 1 valueSize: -1 sequence: 0 headerKeys: [] "
        "key: k" in shown
    )
    assert any(line.endswith("endTxnMarker: ABORT coordinatorEpoch: 3") for line in shown)
    deep = run("dump", "--deep-iteration", file(data, f"{FIRST}.log")).stdout
    assert "| offset: 0" in deep
    assert "payload" not in deep


@pytest.mark.parametrize("style", ["text", "json", "yaml"])
def test_dump_shows_a_header_whose_name_is_not_utf8(tmp_path: Path, style: str) -> None:
    path = tmp_path / f"{FIRST}.log"
    path.write_bytes(build_batch([Record(0, NOW, b"k", b"v", [("n\udcff", b"1")])]))
    shown = run("dump", "--deep-iteration", path, "--format", style)
    assert shown.exit_code == 0, shown.output
    assert "n\ufffd" in shown.stdout


def test_kafkas_tool_shows_contents_only(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    path.write_bytes(build_batch([Record(0, NOW, b"k", b"v", [])]))
    words = ("--files", str(path), "--print-data-log", "--skip-record-metadata")
    assert call_tool("kafka-dump-log.sh", *words).out.splitlines()[-1] == "| key: k payload: v"


def test_dump_shows_indexes_and_snapshots(data: Path) -> None:
    assert "offset: 1 position: 75" in run("dump", file(data, f"{FIRST}.index")).stdout
    assert (
        f"timestamp: {NOW + 10} offset: 5" in run("dump", file(data, f"{FIRST}.timeindex")).stdout
    )
    assert (
        "version: 0 producerId: 7 firstOffset: 4 lastOffset: 5 lastStableOffset: 6"
        in run("dump", file(data, f"{FIRST}.txnindex")).stdout
    )
    snapshot = run("dump", file(data, "00000000000000000006.snapshot")).stdout
    assert "producerId: 7 producerEpoch: 0 coordinatorEpoch: 3" in snapshot
    assert "currentTxnFirstOffset: OptionalLong.empty" in snapshot
    assert "lastSequence: 0 lastOffset: 4" in snapshot


def test_dump_writes_json_lines(data: Path) -> None:
    result = run("dump", "--format", "json", "--print-data-log", file(data, f"{FIRST}.log"))
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["kind"] for row in rows[:3]] == ["note", "batch", "record"]
    assert rows[2]["headerKeys"] == ["h"]
    assert rows[1]["isvalid"] is True
    assert rows[1]["deleteHorizonMs"] is None


def test_dump_reports_damage(data: Path) -> None:
    damage(file(data, f"{FIRST}.log"), 70)
    result = run("dump", file(data, f"{FIRST}.log"))
    assert result.exit_code == 1
    assert "! the batch at byte 0 does not match its CRC" in result.stdout
    assert "isvalid: false" in result.stdout


def test_dump_reports_a_truncated_file(data: Path) -> None:
    path = file(data, f"{FIRST}.log")
    path.write_bytes(path.read_bytes()[:-1])
    assert "is cut after" in run("dump", path).stdout
    path.write_bytes(path.read_bytes()[:30])
    assert "! no batch begins at byte 0" in run("dump", path).stdout


@pytest.mark.parametrize(
    ("suffix", "problem"),
    [("index", "is not the last of a batch"), ("timeindex", "is not the newest")],
)
def test_dump_compares_indexes_with_the_batches(data: Path, suffix: str, problem: str) -> None:
    damage(file(data, f"{FIRST}.{suffix}"), 7)
    result = run("dump", file(data, f"{FIRST}.{suffix}"))
    assert result.exit_code == 1
    assert problem in result.stdout


def test_dump_refuses_other_files(data: Path) -> None:
    result = run("dump", data / "meta.properties")
    assert result.exit_code == 1
    assert "penstock: " in result.stderr
    assert "Traceback" not in result.output


def test_records_of_the_brokers_own_topics_are_decoded(tmp_path: Path) -> None:
    offset = OffsetCommitKey(group="g", topic="t", partition=2)
    committed = OffsetCommitValue(offset=7, leader_epoch=3, metadata="m", commit_timestamp=NOW)
    member = MemberMetadata(
        member_id="m-1",
        client_id="c",
        client_host="/h",
        rebalance_timeout=1,
        session_timeout=2,
        subscription=encode(ConsumerProtocolSubscription(topics=["t"]), 0, b"\0\0"),
        assignment=b"\0",
    )
    group = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m-1", members=[member]
    )
    pid = TransactionLogValue(producer_id=5, producer_epoch=1, transaction_timeout_ms=9)
    rows: dict[str, list[tuple[bytes | None, bytes | None]]] = {
        "__consumer_offsets": [
            (encode(offset, 0, b"\0\1"), encode(committed, 4, b"\0\4")),
            (encode(offset, 0, b"\0\1"), None),
            (encode(GroupMetadataKey(group="g"), 0, b"\0\2"), encode(group, 3, b"\0\3")),
            (b"\0\x63", b""),
            (b"", b""),
        ],
        "__transaction_state": [
            (encode(TransactionLogKey("x"), 0, b"\0\0"), encode(pid, 0, b"\0\0"))
        ],
        "__cluster_metadata": [
            (None, b"\1\2\0" + b"\2t" + bytes(TOPIC_ID) + b"\0"),
            (None, b"\1\x63\0"),
            (None, b"\1\2\7"),
            (None, b"\1"),
        ],
    }
    shown = {}
    for topic, records in rows.items():
        folder = tmp_path / f"{topic}-0"
        folder.mkdir()
        batch = build_batch(
            Record(at, NOW, key, value, []) for at, (key, value) in enumerate(records)
        )
        (folder / f"{FIRST}.log").write_bytes(bytes(batch))
        path = str(folder / f"{FIRST}.log")
        printed = run("dump", "--print-data-log", "--format", "json", path)
        assert printed.exit_code == 0, printed.output
        found = [json.loads(line) for line in printed.stdout.splitlines()]
        shown[topic] = [
            (each.get("key"), each.get("payload")) for each in found if each["kind"] == "record"
        ]
        named = run("dump", "--print-data-log", "--decoder", topic, "--format", "json", path)
        assert named.stdout == printed.stdout
        for spelled in (topic, topic.removeprefix("__")):  # decoded records are printed
            alone = run("dump", "--decoder", spelled, "--format", "json", path)
            assert alone.stdout == printed.stdout
        unknown = run("dump", "--decoder", "nonsense", path)
        assert (unknown.exit_code, unknown.stdout) == (2, "")

    (key, value), (_, deleted), (_, grouped), (strange, _), (nothing, _) = shown[
        "__consumer_offsets"
    ]
    assert json.loads(key) == {"type": "1", "data": {"group": "g", "topic": "t", "partition": 2}}
    assert json.loads(value) == {
        "version": "4",
        "data": {"offset": 7, "leaderEpoch": 3, "metadata": "m", "commitTimestamp": NOW},
    }
    assert deleted == "<DELETE>"
    (member,) = json.loads(grouped)["data"]["members"]
    assert member["memberId"] == "m-1"
    assert member["subscription"]["topics"] == ["t"]
    assert member["assignment"] == "AA=="
    assert strange == "Unknown record type 99 at offset 3, skipping."
    assert nothing.startswith("Error at offset 4, skipping.")
    ((key, value),) = shown["__transaction_state"]
    assert json.loads(key) == {"type": "0", "data": {"transactionalId": "x"}}
    assert json.loads(value)["data"]["producerId"] == 5
    (_, value), *strange = shown["__cluster_metadata"]
    for (_, text), problem in zip(strange, ("type 99", "version 7", "does not tell"), strict=True):
        assert (text.startswith("Error at "), problem in text) == (True, True), text
    assert json.loads(value) == {
        "type": "TOPIC_RECORD",
        "version": 0,
        "data": {"name": "t", "topicId": uuid_text(TOPIC_ID)},
    }


def test_verify_finds_nothing_wrong_with_an_intact_directory(data: Path) -> None:
    result = run("verify", "--deep-iteration", data)
    assert result.exit_code == 0, result.output
    assert "1 partition, 2 segments, 7 batches, 7 records" in result.stdout
    assert result.stdout.endswith("no damage\n")
    assert run("verify", data / "orders-0").exit_code == 0


@pytest.mark.parametrize(
    ("name", "at", "problem"),
    [
        (f"{FIRST}.log", 70, "wrong CRC at byte 0"),
        (f"{FIRST}.log", 75 + 16, "has no batch at byte 75"),
        (f"{FIRST}.log", 7, "offsets 1 to 1"),
        (f"{FIRST}.index", 7, "is not the last of a batch"),
        (f"{FIRST}.timeindex", 7, "is not the newest timestamp"),
        (f"{FIRST}.txnindex", 1, "version 1"),
        ("00000000000000000006.snapshot", 20, "does not match its CRC"),
        ("leader-epoch-checkpoint", 2, "declares"),
        ("partition.metadata", 9, "version"),
    ],
)
def test_verify_reports_damage(data: Path, name: str, at: int, problem: str) -> None:
    damage(file(data, name), at)
    result = run("verify", data)
    assert result.exit_code == 1
    assert problem in result.stdout
    assert f"orders-0/{name}" in result.stdout


def test_verify_reports_missing_or_contradicting_files(data: Path) -> None:
    file(data, f"{FIRST}.index").unlink()
    file(data, "leader-epoch-checkpoint").write_bytes(b"0\n1\n5 0\n")
    (data / "recovery-point-offset-checkpoint").write_bytes(b"0\n1\norders 0 99\n")
    report = json.loads(run("verify", "--format", "json", data).stdout)
    damage = " / ".join(f"{found['path']}: {found['what']}" for found in report["damage"])
    assert "index: is missing" in damage
    assert "has epoch 5 for offset 0, which was written in epoch 0" in damage
    assert "orders-0 at 99, but its log ends at 7" in damage


def test_verify_accepts_an_index_that_is_not_written_yet(data: Path) -> None:
    file(data, "00000000000000000006.index").unlink()  # the index of the last segment
    result = run("verify", data)
    assert result.exit_code == 0
    assert "6.index: is not there yet" in result.stdout
    file(data, "00000000000000000006.timeindex").unlink()
    remark, _ = run("verify", data).stdout.splitlines()
    assert remark.startswith("  2 files, such as ")


@pytest.mark.parametrize(("segment", "code"), [("00000000000000000006", 0), (FIRST, 1)])
def test_verify_accepts_an_epoch_that_is_not_flushed_yet(
    data: Path, segment: str, code: int
) -> None:
    """A running broker writes the epoch later, but always when it rolls a segment."""
    path = file(data, f"{segment}.log")
    batches = bytearray(path.read_bytes())
    batches[12:16] = (2).to_bytes(4)  # the first batch's epoch, which no CRC covers
    path.write_bytes(batches)
    result = run("verify", data)
    assert result.exit_code == code
    assert ("does not have the last epoch yet" in result.stdout) == (code == 0)


def test_verify_reports_bad_records_with_deep_iteration(data: Path) -> None:
    path = file(data, "00000000000000000006.log")
    batch = build_batch([Record(6, NOW + 11, b"k", b"last", [])], base_offset=6, leader_epoch=0)
    batch[57:61] = (2).to_bytes(4)  # a second record that does not exist
    seal(batch)
    path.write_bytes(batch)
    assert "has bad records" in run("verify", "--deep-iteration", data).stdout
    assert "has bad records" not in run("verify", data).stdout


def test_verify_reports_leftovers_of_a_crash(data: Path) -> None:
    file(data, f"{FIRST}.log.cleaned").touch()
    (data / f"gone-0.{'0' * 32}-delete").mkdir()
    result = run("verify", data)
    assert result.exit_code == 0
    assert "is left over" in result.stdout
    assert "is marked as delete" in result.stdout


def test_verify_rejects_a_directory_without_logs(tmp_path: Path) -> None:
    assert run("verify", tmp_path).exit_code == 2
    assert run("verify", tmp_path / "none").exit_code == 2


ID = "AAECAwQFBgcICQoLDA0ODw"


def adopt(data: Path, *options: str | Path) -> Result:
    return run("adopt", data, "--dir", data.parent / "home", *options)


def registered(data: Path) -> ClusterImage:
    async def read() -> ClusterImage:
        loop = asyncio.get_running_loop()
        with closing(Tree.open(data.parent / "home" / FILE_NAME, SystemClock())) as tree:
            return await read_image(EmbeddedStore(tree, loop.call_soon))

    return asyncio.run(read())


def test_adopt_lists_topics_ids_and_partitions(data: Path) -> None:
    (data / "__cluster_metadata-0").mkdir()
    result = adopt(data, "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "cluster cluster, broker 1",
        f"orders {ID} partitions 0",
        "ignored: __cluster_metadata-0",
    ]
    assert not (data.parent / "home").exists()
    adopted = json.loads(adopt(data, "--format", "json").stdout)
    assert adopted["topics"] == [
        {
            "name": "orders",
            "topic_id": ID,
            "partitions": [{"partition": 0, "last_epoch": 0, "replicas": [1]}],
            "configs": {},
        }
    ]
    assert adopted["clean_shutdown"] is True


def test_adopt_registers_topics_in_a_new_epoch_of_their_broker(data: Path) -> None:
    before = sorted(path for path in data.rglob("*"))
    assert adopt(data, "-c", "retention.ms=-1").exit_code == 0
    image = registered(data)
    topic = image.topics["orders"]
    assert topic.id == TOPIC_ID
    assert (topic.partitions[0].replicas, topic.partitions[0].isr) == ((1,), (1,))
    assert topic.partitions[0].leader_epoch == 1
    assert image.topic_configs["orders"] == {"retention.ms": "-1"}
    assert image.cluster_id == "cluster"
    assert sorted(path for path in data.rglob("*")) == before


@pytest.mark.parametrize(
    "topic",
    ["__consumer_offsets", "__penstock_redrive_state", "_schemas", "penstock-progress"],
)
def test_adopt_keeps_the_state_of_coordinators_and_services(data: Path, topic: str) -> None:
    (data / "orders-0").rename(data / f"{topic}-0")
    assert adopt(data, "-c", "retention.ms=1000").exit_code == 0
    configs = registered(data).topic_configs[topic]
    assert configs["cleanup.policy"] == "compact"
    assert configs.get("retention.ms") != "1000"


def test_topics_whose_settings_are_lost_keep_all_records(data: Path) -> None:
    """The next start would delete records older than the default, whatever the topic had before."""
    result = adopt(data)
    assert f"orders {ID} partitions 0 retention.ms=-1" in result.stdout
    assert registered(data).topic_configs["orders"] == {"retention.ms": "-1"}


def test_a_given_setting_overrides_that_of_an_adopted_topic(data: Path) -> None:
    assert adopt(data, "-c", "retention.ms=1000").exit_code == 0
    assert registered(data).topic_configs["orders"] == {"retention.ms": "1000"}


def test_adopt_names_topics_that_are_already_registered(data: Path) -> None:
    assert adopt(data).exit_code == 0
    again = adopt(data)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "topic orders is registered already" in again.stderr
    make_partition(data / "later-0")
    later = adopt(data)
    assert later.exit_code == 0
    assert f"later {ID} partitions 0" in later.stdout
    assert set(registered(data).topics) == {"orders", "later"}


def test_adopt_takes_the_directories_of_one_broker_together(data: Path) -> None:
    second = data.parent / "second"
    second.mkdir()
    shutil.copy(data / "meta.properties", second)
    make_partition(second / "orders-1")
    make_partition(data / "orders-2")
    assert adopt(data).exit_code == 2
    assert "orders has more partitions than 0,2" in adopt(data).stderr
    assert adopt(data, second).exit_code == 0
    assert set(registered(data).topics["orders"].partitions) == {0, 1, 2}


def test_adopt_refuses_directories_that_do_not_belong_together(data: Path) -> None:
    second = data.parent / "second"
    make_partition(second / "orders-0")
    meta = second / "meta.properties"
    meta.write_bytes(encode_meta_properties(MetaProperties(1, "cluster")))
    assert "orders-0 is in two" in adopt(data, second).stderr
    (second / "orders-0").rename(second / "orders-1")
    meta.write_bytes(encode_meta_properties(MetaProperties(2, "cluster")))
    assert "more than one broker: 1, 2" in adopt(data, second).stderr
    meta.write_bytes(encode_meta_properties(MetaProperties(1, "other")))
    assert "more than one cluster: cluster, other" in adopt(data, second).stderr
    assert not (data.parent / "home").exists()


@pytest.mark.parametrize(
    ("identity", "problem"),
    [(MetaProperties(1, "other"), "to cluster other"), (MetaProperties(2, "cluster"), "broker 1")],
)
def test_adopt_refuses_another_brokers_home(
    data: Path, identity: MetaProperties, problem: str
) -> None:
    assert adopt(data).exit_code == 0
    (data / "meta.properties").write_bytes(encode_meta_properties(identity))
    (data / "orders-0").rename(data / "others-0")
    result = adopt(data)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert set(registered(data).topics) == {"orders"}


def test_adopt_refuses_a_home_in_use(data: Path) -> None:
    home = data.parent / "home"
    home.mkdir()
    with closing(Tree.open(home / FILE_NAME, SystemClock())):
        result = adopt(data)
    assert (result.exit_code, "in use" in result.stderr) == (2, True)


def test_adopt_refuses_settings_that_no_topic_has(data: Path) -> None:
    result = adopt(data, "-c", "retention.hours=1")
    assert result.exit_code == 1
    assert "retention.hours" in result.stderr
    assert not (data.parent / "home").exists()


def test_adopt_reports_an_unclean_shutdown(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    assert "did not shut down cleanly" in adopt(data).stdout


def test_adopt_refuses_a_directory_with_contradicting_files(data: Path) -> None:
    other = data / "orders-1"
    other.mkdir()
    (other / "partition.metadata").write_bytes(encode_partition_metadata(Uuid(b"x" * 16)))
    result = adopt(data)
    assert result.exit_code == 2
    assert "two topic ids" in result.stderr
    (other / "partition.metadata").unlink()
    assert "is missing" in adopt(data).stderr
    (other / "partition.metadata").write_bytes(b"?")
    assert adopt(data).exit_code == 1


def test_adopt_refuses_a_directory_in_use(data: Path) -> None:
    release = DiskFiles().lock(data / ".lock")
    result = adopt(data)
    release()
    assert result.exit_code == 2
    assert "in use" in result.stderr


def test_adopt_rejects_a_directory_without_logs(tmp_path: Path) -> None:
    assert run("adopt", tmp_path).exit_code == 2
