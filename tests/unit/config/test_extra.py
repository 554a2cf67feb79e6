"""The command that installs an extra, depending on how Penstock was installed."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.config.extra import command, install

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("origin", "reported"),
    [
        (None, "pip install 'penstock[cli]'"),
        ({"url": "file:///src/a%20b", "dir_info": {}}, "pip install '/src/a b[cli]'"),
        (
            {"url": "file:///src/p", "dir_info": {"editable": True}},
            "pip install -e '/src/p[cli]'",
        ),
        (
            {"url": "file:///d/penstock-1-py3-none-any.whl", "archive_info": {}},
            "pip install '/d/penstock-1-py3-none-any.whl[cli]'",
        ),
        (
            {"url": "https://h/penstock-1-py3-none-any.whl", "archive_info": {}},
            "pip install 'penstock[cli] @ https://h/penstock-1-py3-none-any.whl'",
        ),
        (
            {"url": "https://h/p.git", "vcs_info": {"vcs": "git", "commit_id": "ab12"}},
            "pip install 'penstock[cli] @ git+https://h/p.git@ab12'",
        ),
    ],
)
def test_an_extra_is_installed_from_the_source_of_penstock(
    origin: dict[str, Any] | None, reported: str
) -> None:
    assert command("cli", None if origin is None else json.dumps(origin)) == reported


def test_the_install_command_names_an_existing_path() -> None:
    words = shlex.split(install("cli"))
    place = words[-1].removesuffix("[cli]")
    assert words[:2] == ["pip", "install"]
    assert place in {"penstock", "."} or Path(place).exists()


def test_without_an_installation_the_extra_comes_from_the_clone() -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1])\n"
    script += "from penstock.config.extra import install; print(install('sdk'))"
    words = [sys.executable, "-I", "-S", "-c", script, str(ROOT / "src")]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ran.stdout == "pip install '.[sdk]'\n"


def test_no_message_spells_out_the_command_itself() -> None:
    spelled = re.compile(r"pip install '?(penstock|\.)[\['\s]")
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "src").rglob("*.py"))
        if path.name != "extra.py" and spelled.search(path.read_text("utf-8"))
    ]
    assert found == []
