"""Lines of the pages for Kafka's commands and for curl, run by a shell as they are printed."""

import re
from pathlib import Path
from urllib.request import urlopen

import pytest

from peers.penstock import PenstockBroker
from peers.process import free_ports, wait_until
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry
from support.commands.bin_scripts import Shell

DOCS = Path(__file__).parents[2] / "docs"
SUPER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def lines(page: str, program: str) -> list[str]:
    """The lines of code on a page that call `program`, without remarks."""
    text = (DOCS / page).read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(rf"(?m)^(?:    )?({program}.*)$", text)
    return [line.partition("  #")[0].strip() for line in found]


OF_KAFKA = {
    page.name: found for page in DOCS.glob("*.md") if (found := lines(page.name, "kafka-[a-z]"))
}


def test_pages_with_kafkas_commands_are_found() -> None:
    assert OF_KAFKA.keys() >= {"groups.md", "queues.md", "security.md"}


@pytest.mark.parametrize("page", sorted(OF_KAFKA))
def test_kafkas_commands_on_a_page_run(page: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "admin.properties").touch()
    with EmbeddedBroker(settings=SUPER) as broker:
        for topic in ("orders", "payments"):
            broker.create_topic(topic)
        shell.output(f"echo hello | kafka-console-producer.sh --topic orders {at(broker)}")
        for line in OF_KAFKA[page]:
            line = re.sub(r"^(kafka-[a-z-]+) ", r"\1.sh ", line)
            line = re.sub(r"--bootstrap-server localhost:\d+", at(broker), line)
            if "-consumer" in line.split()[0]:  # runs until Ctrl-C
                assert shell.lines_of(line, 1) == ["hello\n"]
            else:
                shell.output(line)


def at(broker: EmbeddedBroker | PenstockBroker) -> str:
    return f"--bootstrap-server {broker.bootstrap}"


def test_records_are_written_by_the_lines_for_curl(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    (tmp_path / "orders.ndjson").write_text('{"id": 1}\n{"id": 2}\n')
    settings = (f"penstock.rest.listen={address}", "penstock.rest.token=none")
    options = [word for each in settings for word in ("--set", each)]
    commands = lines("sdk.md", "curl")
    assert len(commands) == 4
    with PenstockBroker(*options, folder=tmp_path / "data") as broker:
        Shell(tmp_path).output(f"kafka-topics.sh --create --topic orders {at(broker)}")
        wait_until(lambda: answers(f"http://{address}/readyz"), 60, "the HTTP service")
        for line in commands:
            line = line.replace("127.0.0.1:8082", address).replace("curl ", "curl -sSf ")
            assert '"error": null' in Shell(tmp_path).output(line).replace('":null', '": null')


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def test_a_schema_is_registered_by_the_line_for_curl(tmp_path: Path) -> None:
    (line,) = lines("registry.md", "curl")
    with EmbeddedBroker() as broker, EmbeddedRegistry(broker.bootstrap) as registry:
        line = line.replace("http://127.0.0.1:8081", registry.url).replace("curl ", "curl -sSf ")
        assert '"id"' in Shell(tmp_path).output(line)
