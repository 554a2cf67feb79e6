"""A real Prometheus on loopback, and its tool."""

import json
import subprocess
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from peers.jars import NotInstalledError, cache
from peers.process import Process, free_ports
from peers.servers import Servers

CONFIG = {
    "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
    "rule_files": ["rules.yml"],
    "scrape_configs": [{"job_name": "penstock", "file_sd_configs": [{"files": ["targets.json"]}]}],
}
"""Written as JSON, which is also YAML."""


def program(name: str) -> str:
    found = cache() / "debian" / "prometheus" / "usr" / "bin" / name
    if not found.exists():
        raise NotInstalledError(name)
    return str(found)


def promtool(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [program("promtool"), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


class Prometheus(Servers):
    """`with Prometheus(rules) as prometheus: prometheus.scrape(["127.0.0.1:8000"])`."""

    def __init__(self, rules: str, folder: Path | None = None, timeout_s: float = 60) -> None:
        super().__init__(folder, timeout_s)
        (self.port,) = free_ports(1)
        self._rules = rules

    def scrape(self, targets: Iterable[str]) -> None:
        """Scrapes these targets from now on; a restarted broker has another address."""
        path = self.folder / "prometheus" / "targets.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps([{"targets": list(targets)}]))
        part.replace(path)

    def firing(self) -> set[str]:
        """The names of the alerts that fire now."""
        return {
            each["labels"]["alertname"]
            for each in self._asked("alerts")["alerts"]
            if each["state"] == "firing"
        }

    def _asked(self, path: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}"
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.load(response)["data"]

    def _answers(self, number: int) -> bool:  # noqa: ARG002 - there is one
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=1):
                return True
        except OSError:
            return False

    def _prepared(self) -> dict[int, Process]:
        folder = self.folder / "prometheus"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rules.yml").write_text(self._rules)
        (folder / "prometheus.yml").write_text(json.dumps(CONFIG))
        self.scrape([])
        command = [program("prometheus"), f"--config.file={folder / 'prometheus.yml'}"]
        command += [f"--storage.tsdb.path={folder / 'data'}", "--query.lookback-delta=4s"]
        command += [f"--web.listen-address=127.0.0.1:{self.port}"]
        return {0: Process("Prometheus", command, folder)}
