"""The audit is skipped only if its database cannot be reached."""

import json
import sys
from typing import Any

import pytest
from scripts.audit import main

REFUSED = (
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='index.example', port=443): Max "
    "retries exceeded"
)


def said(*, out: object = "", error: str = "", code: int = 0) -> list[str]:
    """A program with this output and exit code."""
    text = out if isinstance(out, str) else json.dumps(out)
    program = (
        f"import sys; sys.stdout.write({text!r}); sys.stderr.write({error!r}); sys.exit({code})"
    )
    return [sys.executable, "-S", "-c", program]


def package(**found: Any) -> dict[str, object]:
    return {"dependencies": [{"name": "x", "version": "1", **found}], "fixes": []}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (said(out=package(vulns=[])), 0),
        (said(out=package(vulns=[{"id": "CVE-1"}]), code=1), 1),
        (said(out=package(skip_reason="not found")), 0),
        (said(error=f"Traceback\n{REFUSED}\n", code=1), 0),
        (said(error="ERROR: Could not connect to PyPI's vulnerability feed", code=1), 0),
        (said(error="usage: pip-audit\npip-audit: error: unrecognized arguments: -x", code=2), 2),
        (said(error="Traceback\nValueError: ConnectionError is not to blame", code=1), 2),
        (said(error="ERROR: invalid requirements input: constraints.txt", code=1), 2),
        (said(), 2),
        (["./no-such-program"], 2),
    ],
)
def test_the_exit_code_depends_on_the_output(
    command: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == code
    printed = capsys.readouterr()
    assert ("skipped" in printed.out) == (code == 0 and "vulns" not in command[-1])
    assert bool(printed.err) == (code == 2)
