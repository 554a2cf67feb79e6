"""Looks for known vulnerabilities in what constraints.txt pins (pip-audit).

Without a way to its database there is a notice and no failure: a build must work offline.
"""

import json
import subprocess
import sys
from pathlib import Path

LIMIT_S = 120
COMMAND = ["--timeout", "3", "--disable-pip", "--require-hashes", "-r", "constraints.txt"]


def audited() -> list[dict[str, object]] | None:
    """What pip-audit found, by package; None if its database cannot be reached."""
    program = Path(sys.executable).with_name("pip-audit")
    try:
        done = subprocess.run(
            [program, *COMMAND, "--progress-spinner", "off", "--format", "json"],
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        found: list[dict[str, object]] = json.loads(done.stdout)["dependencies"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError):
        return None
    # An index without this interface answers for no package at all.
    return found if any("vulns" in each for each in found) else None


def main() -> int:
    found = audited()
    if found is None:
        print("pip-audit: skipped, its database cannot be reached")
        return 0
    bad = [each for each in found if each.get("vulns")]
    for each in bad:
        print(f"pip-audit: {each['name']} {each['version']}: {json.dumps(each['vulns'])}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
