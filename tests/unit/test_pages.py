"""Pages for readers: their links work, and the glossary is in order."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_existing_targets(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    inside = {each for each in targets if "://" not in each}
    assert {each for each in inside if not (page.parent / each).exists()} == set()


def test_the_glossary_is_alphabetical() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [word.lower() for word in re.findall(r"(?m)^\| ([^|*]+) \| .*\.\s\|$", page)]
    assert len(words) == page.count("\n|") - 2, "each word has a sentence"
    assert words == sorted(set(words))
