"""Workers whose metadata is lost are adopted by the command that the refused start advises."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.errors import ConfigError
from penstock.local.workers.layout import (
    Layout,
    Resize,
    adopt_layout,
    read_layout,
    write_layout,
)
from penstock.local.workers.temporary import temporary_workers
from penstock.log.disk import DiskFiles
from penstock.metadata.tree import FILE_NAME

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
LINES = [f"line {number}" for number in range(24)]


def run(*words: str, given: str | None = None) -> str:
    done = CliRunner().invoke(main, words, input=given)
    assert done.exit_code == 0, done.output
    return done.stdout


def check(bootstrap: str, written: list[str]) -> None:
    at = ("-b", bootstrap)
    described = run("topic", "describe", "events", *at, "--format", "json")
    assert described.count('"leader"') == 4
    assert sorted(run("consume", "events", *at).splitlines()) == sorted(written)
    assert run("consume", "events", "-g", "g", *at) == "", "all of it was committed"


def advised(refusal: ConfigError) -> list[str]:
    advice = re.search(r"\(penstock (log adopt [^)]*)\)", str(refusal))
    assert advice is not None, refusal
    return shlex.split(advice[1])


def adopted(*words: str) -> list[str]:
    """Adopts; returns the advised command."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "cluster " in done.stdout
    advice = re.search(r"to serve them: penstock serve (.*)", done.stderr)
    assert advice is not None, done.stderr
    return shlex.split(advice[1])


@pytest.mark.parametrize("name", ["data", "my data"])
def test_the_advised_adoption_restores_everything(tmp_path: Path, name: str) -> None:
    tmp_path = tmp_path / name
    tmp_path.mkdir()
    with temporary_workers(tmp_path, 2, SETTINGS) as state:
        at = ("-b", state.bootstrap)
        run("topic", "create", "events", "-p", "4", *at)
        run("produce", "events", *at, given="\n".join(LINES))
        assert len(run("consume", "events", "-g", "g", *at).splitlines()) == len(LINES)
    for each in tmp_path.glob(f"{FILE_NAME}*"):
        each.unlink()
    with pytest.raises(ConfigError) as refused, temporary_workers(tmp_path, 2, SETTINGS):
        pass
    assert adopted(*advised(refused.value)) == ["--dir", str(tmp_path)]
    with temporary_workers(tmp_path, 2, SETTINGS) as state:
        check(state.bootstrap, LINES)
        run("produce", "events", "-b", state.bootstrap, given="one more")
        run("consume", "events", "-g", "g", "-b", state.bootstrap)
    with temporary_workers(tmp_path, 1, SETTINGS) as state:
        check(state.bootstrap, [*LINES, "one more"])


def test_workers_with_a_lost_data_directory_are_restored_from_their_log_directories(
    tmp_path: Path,
) -> None:
    old, new, logs = tmp_path / "old", tmp_path / "new", tmp_path / "logs"
    settings = {**SETTINGS, "log.dirs": str(logs)}
    old.mkdir()
    with temporary_workers(old, 3, settings) as state:
        run("topic", "create", "events", "-p", "4", "-b", state.bootstrap)
        run("produce", "events", "-b", state.bootstrap, given="\n".join(LINES))
        run("consume", "events", "-g", "g", "-b", state.bootstrap)
    shutil.rmtree(old)
    new.mkdir()
    folders = [str(logs / f"worker.{index}") for index in range(3)]
    with pytest.raises(ConfigError) as refused, temporary_workers(new, 3, settings):
        pass
    words = adopted(*advised(refused.value))
    assert words == ["--dir", str(new), "--set", f"log.dirs={logs}"]
    assert read_layout(new).workers == 3
    wrong = {**SETTINGS, "log.dirs": ",".join(folders)}
    with pytest.raises(ConfigError, match=f"name {logs}"), temporary_workers(new, 3, wrong):
        pass
    with temporary_workers(new, 3, settings) as state:
        check(state.bootstrap, LINES)


def test_an_adoption_also_corrects_a_layout_of_one_worker(tmp_path: Path) -> None:
    """A data directory that once had several workers: otherwise the same advice would come for
    ever.
    """
    old, new, logs = tmp_path / "old", tmp_path / "new", tmp_path / "logs"
    settings = {**SETTINGS, "log.dirs": str(logs)}
    old.mkdir()
    with temporary_workers(old, 2, settings) as state:
        run("topic", "create", "events", "-p", "4", "-b", state.bootstrap)
        run("produce", "events", "-b", state.bootstrap, given="\n".join(LINES))
        run("consume", "events", "-b", state.bootstrap)  # now each worker has its logs
    new.mkdir()
    write_layout(DiskFiles(), new, Layout(workers=1))
    with pytest.raises(ConfigError) as refused, temporary_workers(new, 2, settings):
        pass
    adopted(*advised(refused.value))
    assert read_layout(new) == Layout(workers=2)
    with temporary_workers(new, 2, settings) as state:
        assert "events" in run("topic", "list", "-b", state.bootstrap)


def test_an_adoption_does_not_overwrite_an_unfinished_resize(tmp_path: Path) -> None:
    begun = Layout(workers=1, resize=Resize(3, (1, 2, 3)))
    write_layout(DiskFiles(), tmp_path, begun)
    folders = [tmp_path / "logs" / f"worker.{index}" for index in range(2)]
    for each in folders:
        each.mkdir(parents=True)
    assert adopt_layout(DiskFiles(), tmp_path, folders) == [tmp_path / "logs"]
    assert read_layout(tmp_path) == begun


def test_a_damaged_layout_is_refused_before_anything_is_adopted(tmp_path: Path) -> None:
    for index in range(2):
        folder = tmp_path / "logs" / f"worker.{index}"
        folder.mkdir(parents=True)
        (folder / "meta.properties").write_text(f"version=1\nnode.id={index}\ncluster.id=c\n")
    (tmp_path / "workers.json").write_text("{")
    folders = [str(each) for each in (tmp_path / "logs").iterdir()]
    done = CliRunner().invoke(main, ["log", "adopt", "--dir", str(tmp_path), *folders])
    assert done.exit_code != 0
    assert "workers.json is damaged" in done.output
    assert not (tmp_path / FILE_NAME).exists()
