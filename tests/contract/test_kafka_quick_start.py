"""Kafka's own quick start, word for word except for the port; at the end the broker is stopped."""

import re
import shutil
from pathlib import Path

import pytest

from peers.process import free_ports
from support.commands.bin_scripts import ROOT, Shell

STEPS = """\
bin/kafka-storage.sh random-uuid
bin/kafka-storage.sh format --standalone -t ID -c config/server.properties
bin/kafka-server-start.sh -daemon config/server.properties
bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092
bin/kafka-topics.sh --describe --topic quickstart-events --bootstrap-server localhost:9092
bin/kafka-console-producer.sh --topic quickstart-events --bootstrap-server localhost:9092 < events
bin/kafka-console-consumer.sh --topic quickstart-events --from-beginning --bootstrap-server \
localhost:9092
bin/kafka-server-stop.sh
"""


@pytest.mark.row("A126", "A174")
@pytest.mark.timeout(120)
def test_kafkas_quick_start_works(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "bin").symlink_to(ROOT / "bin")
    settings = tmp_path / "config" / "server.properties"
    text = settings.read_text().replace("localhost:9092", f"localhost:{port}")
    settings.write_text(text.replace("/tmp/kafka-logs", f"{tmp_path}/kafka-logs"))
    (tmp_path / "events").write_text("This is my first event\nThis is my second event\n")
    steps = iter(STEPS.replace("localhost:9092", f"localhost:{port}").splitlines())
    shell = Shell(tmp_path)

    cluster = shell.output(next(steps)).strip()
    assert re.fullmatch(r"[\w-]{22}", cluster)
    formatting = next(steps).replace("ID", cluster)
    assert shell.output(formatting).startswith("Formatting metadata directory ")
    assert "is already formatted" in shell.run(formatting).stderr
    assert shell.output(next(steps)) == ""
    try:
        assert shell.output(next(steps)) == "Created topic quickstart-events.\n"
        assert shell.output(next(steps)).startswith("Topic: quickstart-events\tTopicId: ")
        shell.output(next(steps))
        assert shell.lines_of(next(steps), 2) == [
            "This is my first event\n",
            "This is my second event\n",
        ]
        identity = f"bin/kafka-cluster.sh cluster-id --bootstrap-server localhost:{port}"
        assert shell.output(identity) == f"Cluster ID: {cluster}\n"
    finally:
        shell.output("bin/kafka-server-stop.sh")
    again = shell.run(next(steps))
    assert (again.returncode, again.stdout) == (1, "No kafka server to stop\n")
