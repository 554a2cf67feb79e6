"""CHANGELOG.md has this version on top, and its versions in order; SECURITY.md supports it."""

import re
from pathlib import Path

from penstock import __version__

ROOT = Path(__file__).parents[2]
CHANGELOG = ROOT / "CHANGELOG.md"
HEADING = re.compile(r"Unreleased|(?P<version>\d+\.\d+\.\d+) - \d{4}-\d{2}-\d{2}")


def test_the_newest_version_is_that_of_the_package() -> None:
    text = CHANGELOG.read_text(encoding="utf-8")
    headings = [HEADING.fullmatch(each) for each in re.findall(r"(?m)^## (.*)$", text)]
    assert all(headings), "a heading is `Unreleased`, or a version and its day"
    versions = [each["version"] for each in headings if each is not None and each["version"]]
    assert versions[0] == __version__
    assert versions == sorted(versions, key=lambda each: [*map(int, each.split("."))], reverse=True)


def test_this_version_gets_fixes() -> None:
    minor = __version__.rpartition(".")[0]
    assert f"| {minor} | yes |" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
