"""Looks for known vulnerabilities in the versions that constraints.txt pins (pip-audit).

If pip-audit cannot reach its database, this prints a notice and succeeds, because a build must work
offline. All else fails the build: pip-audit is missing, refuses its arguments or crashes.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LIMIT_S = 120
PROGRAM = str(Path(sys.executable).with_name("pip-audit"))
COMMAND = (
    *(PROGRAM, "--timeout", "3", "--disable-pip", "--require-hashes", "-r", "constraints.txt"),
    *("--progress-spinner", "off", "--format", "json"),
)
OFFLINE = re.compile(
    r"^requests\.exceptions\.(ConnectionError|ConnectTimeout|ProxyError|ReadTimeout|SSLError)\b"
    r"|Could not connect to PyPI's vulnerability feed|PyPI is not redirecting properly",
    re.MULTILINE,
)
"""pip-audit's output when its database cannot be reached."""


class Unreachable(Exception):
    """The vulnerability database cannot be reached from here."""


class Broken(Exception):
    """pip-audit itself does not work."""


def audited(command: Sequence[str] = COMMAND, limit_s: float = LIMIT_S) -> list[dict[str, Any]]:
    """pip-audit's findings by package."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except OSError as error:
        raise Broken(f"cannot be started ({error}); run make setup") from None
    except subprocess.TimeoutExpired:
        raise Unreachable(f"no answer within {limit_s:g} s") from None
    return read(done.returncode, done.stdout, done.stderr)


def read(code: int, out: str, said: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        if OFFLINE.search(said):
            raise Unreachable("the connection fails") from None
        last = said.strip().splitlines()[-1:] or ["without a word"]
        raise Broken(f"ended with {code}: {last[0]}") from None
    if not any("vulns" in each for each in found):
        # A package index without the vulnerability API gives no result for any package.
        raise Unreachable("the package index does not answer for any package")
    return found


def main(command: Sequence[str] = COMMAND) -> int:
    try:
        found = audited(command)
    except Unreachable as error:
        print(f"pip-audit: skipped, its database cannot be reached: {error}")
        return 0
    except Broken as error:
        print(f"pip-audit: {error}", file=sys.stderr)
        return 2
    bad = [each for each in found if each.get("vulns")]
    for each in bad:
        print(f"pip-audit: {each['name']} {each['version']}: {json.dumps(each['vulns'])}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
