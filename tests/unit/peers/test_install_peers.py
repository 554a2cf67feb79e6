"""`scripts/install-peers` with a Maven that stalls and fails, and with another install."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "install-peers"
INSTALLED = (
    "javac",
    "node",
    "kcat",
    "nft",
    "postgres",
    "mariadbd",
    "my_print_defaults",
    "npm",
    "redis-check-rdb",
)
APT = '[ "$2" != download ] || touch package.deb\n'
DPKG = 'install -D "$0" "$3/usr/bin/prometheus"\n'
OTHERS = {"apt-get": APT, "dpkg-deb": DPKG, "sudo": 'exec "$@"\n'}
GO = '[ "$*" != "env GOVERSION" ] || echo go1.26.8\n'
MAVEN = """
echo "$*" >>"$CALLS/mvn"
into=$(sed 's/.*-DoutputDirectory=//; s/ .*//' <<<"$*")
tries=$(grep -cF "$into" "$CALLS/mvn")
"""


class Machine:
    """A machine with stubs of all programs that the script looks for, and an empty cache."""

    def __init__(self, folder: Path, maven: str) -> None:
        self.cache, self._bin, self._calls = folder / "cache", folder / "bin", folder / "calls"
        self._bin.mkdir()
        self._calls.mkdir()
        programs = {**dict.fromkeys(INSTALLED, ""), **OTHERS, "go": GO, "mvn": MAVEN + maven}
        for name, text in programs.items():
            path = self._bin / name
            path.write_text(f"#!/usr/bin/env bash\n{text}\n")
            path.chmod(0o755)

    def install(self, **given: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPT],
            env={
                **os.environ,
                "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
                "PENSTOCK_CACHE": str(self.cache),
                "CALLS": str(self._calls),
                **given,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def calls(self) -> list[str]:
        return (self._calls / "mvn").read_text().splitlines()

    def sets(self) -> set[str]:
        """The complete jar sets, as tests look for them."""
        return {path.parent.name for path in self.cache.glob("peers/jars/*/coordinates")}


def test_a_failed_download_is_retried_with_short_timeouts(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "[ $tries -gt 2 ]")
    done = machine.install()
    _, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    assert len(machine.calls()) == 3 * len(machine.sets()) > 0
    assert "try 2 of 3 to fetch the jar set kafka-4.3.1 failed" in err
    for call in machine.calls():
        assert "-Daether.connector.requestTimeout=30000" in call
        assert "-Dmaven.wagon.rto=30000" in call


def test_a_tool_that_hangs_is_killed_and_retried(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "[[ $into != *streams* ]] || [ $tries -gt 1 ] || exec sleep 600")
    done = machine.install(PENSTOCK_TRY_S="3")
    _, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    assert err.splitlines() == [
        "install-peers: try 1 of 3 to fetch the jar set streams-4.3.1 failed"
    ]


def test_one_sentence_names_what_is_missing(tmp_path: Path) -> None:
    said = "[ERROR] Could not transfer artifact org.x:part:jar:1.2 from/to central: Read timed out"
    machine = Machine(tmp_path, f'[[ $into != *streams* ]] || {{ echo "{said}"; exit 1; }}')
    done = machine.install()
    _, err = done.communicate(timeout=60)
    assert done.returncode == 1
    assert err.splitlines()[-2:] == [
        said,
        (
            "install-peers: the jar set streams-4.3.1 is missing (artifact org.x:part:jar:1.2):"
            " check the connection and run scripts/install-peers again"
        ),
    ]
    found = machine.sets()
    assert "connect-4.3.1" in found
    assert "streams-4.3.1" not in found


@pytest.mark.timeout(60)
def test_two_installs_at_the_same_time_fetch_everything_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "")
    both = [machine.install(), machine.install()]
    said = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert len(machine.calls()) == len(machine.sets()) > 0
    assert sum("fetching" in each for each in said) == 1
