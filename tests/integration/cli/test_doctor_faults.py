"""`penstock doctor` names real faults: a lost disk, a broken segment, a group without members."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker
from support.sdk.waiting import wait_until


def penstock(*words: str, given: bytes = b"") -> Result:
    return CliRunner().invoke(main, list(words), input=given)


def findings(*words: str) -> dict[str, dict[str, str]]:
    result = penstock("doctor", *words, "--format", "json")
    found = {each["check"]: each for each in map(json.loads, result.stdout.splitlines())}
    assert result.exit_code == int(any(each["level"] == "error" for each in found.values()))
    return found


def test_a_lost_disk_and_its_partitions_are_named(tmp_path: Path) -> None:
    kept, lost = tmp_path / "kept", tmp_path / "lost"
    settings = {"log.dirs": f"{kept},{lost}"}
    with EmbeddedBroker(directory=tmp_path / "home", settings=settings) as broker:
        broker.create_topic("t", 2)
        where = ("-b", broker.bootstrap)
        assert "offline_log_dir" not in findings(*where)
        (partition,) = lost.glob("t-*")
    lost.rename(tmp_path / "away")
    lost.write_text("no directory")
    with EmbeddedBroker(directory=tmp_path / "home", settings=settings) as broker:
        where = ("-b", broker.bootstrap)
        wait_until(lambda: "offline_partitions" in findings(*where), "its partition is offline")
        found = findings(*where)
        assert found["offline_log_dir"]["what"] == f"log directory {lost} of broker 1 is offline"
        assert "preferred_leaders" not in found, "no other broker could lead it"
        assert partition.name in found["offline_partitions"]["what"]


def test_a_broken_segment_is_named(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path) as broker:
        broker.create_topic("t", 1)
        penstock("produce", "t", "-b", broker.bootstrap, given=b"a\nb\n")
    assert not any(
        each["level"] == "error" for each in findings("--folder", str(tmp_path)).values()
    )
    (segment,) = (tmp_path / "logs" / "t-0").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[-3] ^= 0xFF
    segment.write_bytes(data)
    (damage,) = (
        each for each in findings("--folder", str(tmp_path)).values() if each["level"] == "error"
    )
    assert str(segment) in damage["what"]


def test_a_group_without_members_is_named() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("t", 1)
        where = ("-b", broker.bootstrap)
        penstock("produce", "t", *where, given=b"a\n")
        assert penstock("consume", "t", "-g", "g", "-n", "1", *where).exit_code == 0
        penstock("produce", "t", *where, given=b"b\n" * 20_000)
        (lag,) = (each for each in findings(*where).values() if "group g" in each["what"])
        assert "20000" in lag["what"].replace(",", "")
