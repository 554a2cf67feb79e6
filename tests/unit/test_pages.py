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


def headings(page: Path) -> set[str]:
    """The anchors of a page: its headings, as GitHub and the site spell them in links."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors_of_links_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    pages = {name: headings(page.parent / name if name else page) for name, _ in links}
    assert {(name, anchor) for name, anchor in links if anchor not in pages[name]} == set()


def test_the_glossary_is_alphabetical() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [word.lower() for word in re.findall(r"(?m)^\| ([^|*]+) \| .*\.\s\|$", page)]
    assert len(words) == page.count("\n|") - 2, "each word has a sentence"
    assert words == sorted(set(words))
