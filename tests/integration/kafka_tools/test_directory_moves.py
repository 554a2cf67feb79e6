"""`kafka-reassign-partitions.sh` with log directories in its plan."""

import json
import time
from pathlib import Path

from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import call_tool


def test_a_replica_is_moved_to_another_directory_and_back(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    settings = {"log.dirs": ",".join(map(str, folders))}
    with EmbeddedBroker(directory=tmp_path / "data", settings=settings) as broker:
        broker.create_topic("t", 1)
        here, there = sorted(folders, key=lambda each: not (each / "t-0").is_dir())
        number = broker.running.services.broker_id
        row = {"topic": "t", "partition": 0, "replicas": [number], "log_dirs": [str(there)]}
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [row]}))

        def out(action: str) -> str:
            words = ("--bootstrap-server", broker.bootstrap, action)
            done = call_tool(
                "kafka-reassign-partitions.sh", *words, "--reassignment-json-file", str(plan)
            )
            assert done.code == 0, done.out + done.err
            return done.out

        replica = f"t-0-{number}"
        still = f"Partition t-0 on broker {number} is not being moved from log dir {here} to "
        assert f"\n{still}{there}.\n" in out("--verify")
        assert "None of the specified partition moves are active." in out("--cancel")
        assert f"log directory to {there} for replica t-0 with broker {number}" in out("--execute")
        until = time.monotonic() + 30
        while f"Reassignment of replica {replica} completed successfully." not in out("--verify"):
            assert time.monotonic() < until, out("--verify")
            time.sleep(0.05)
        assert (there / "t-0").is_dir()
