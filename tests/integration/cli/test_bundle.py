"""A support bundle has what helps, and no secrets."""

import json
import tarfile
from pathlib import Path

from click.testing import CliRunner

from penstock.cli.main import main
from support.commands.command_stage import Stage


def test_a_bundle_has_no_secrets(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "penstock.log").write_text("[t] ERROR login with password=hunter2 (x)\n")
    (tmp_path / "penstock-worker-0.log").write_text("[t] INFO worker 0: here (x)\n")
    path = tmp_path / "b.tar.gz"
    words = ["bundle", "-o", str(path), "--log-dir", str(tmp_path), "-b", stage.bootstrap]
    done = CliRunner().invoke(main, [*words, "-X", "client.token=hunter2"])
    assert done.exit_code == 0, done.output
    with tarfile.open(path) as archive:
        texts = {}
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            texts[member.name.rpartition("/")[2]] = file.read().decode()
    assert "hunter2" not in "".join(texts.values())
    assert "ERROR login with password=[hidden]" in texts["penstock.log"]
    assert "worker 0: here" in texts["penstock-worker-0.log"]
    assert json.loads(texts["client.json"])["client.token"] == "[hidden]"
    assert {each["name"] for each in json.loads(texts["topics.json"])} >= {"events", "other"}
    assert json.loads(texts["groups.json"])[0]["lag"] == {"events-0": 1, "events-1": 0}
    assert "retention.ms" in json.loads(texts["settings.json"])["topic events"]


def test_a_bundle_that_cannot_be_written_is_reported(stage: Stage, tmp_path: Path) -> None:
    words = ["bundle", "-o", str(tmp_path / "no" / "b.tar.gz"), "-b", stage.bootstrap]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "No such file or directory" in done.stderr
