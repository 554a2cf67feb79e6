"""The site has all pages; links work, spelling is checked, and pictures are up to date."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from scripts.site import ROOT, Page, address, build, page, resolved, sources

from penstock.cli.main import main
from penstock.local.lab.scenarios import BY_HAND

PAGES = {source: page(source) for source in sources()}


def test_every_page_is_in_the_navigation() -> None:
    written = {f"docs/{each.name}" for each in (ROOT / "docs").glob("*.md")}
    written |= {each.name for each in ROOT.glob("*.md")}
    assert set(sources()) == written
    assert len({address(each) for each in written}) == len(written)


def test_the_site_is_built_without_a_network(tmp_path: Path) -> None:
    made = build(tmp_path / "site")
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    for each in made:
        assert f'href="{address(each.source)}"' in start
        text = (tmp_path / "site" / address(each.source)).read_text(encoding="utf-8")
        assert not re.search(r'(src|<link[^>]*href)="https?:', text)
        for target in re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', text):
            path = tmp_path / "site" / target
            assert path.exists() or (ROOT / target).is_dir(), f"{each.source}: {target}"


@pytest.mark.parametrize("found", PAGES.values(), ids=lambda found: found.source)
def test_links_lead_to_existing_pages_and_headings(found: Page) -> None:
    for link in found.links:
        target = resolved(found.source, link)
        assert (ROOT / target).exists(), link
        anchor = link.partition("#")[2]
        if anchor and target in PAGES:
            assert anchor in PAGES[target].anchors, link


def test_words_are_spelt_correctly() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *sources()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["fetch", "truncation"])
def test_pictures_of_replication_match_the_output_of_the_lab(name: str) -> None:
    assert name in BY_HAND
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    (shown,) = re.findall(rf"(?s)\$ penstock lab {name}\n(.*?)\n```", text)
    assert CliRunner().invoke(main, ["lab", name]).stdout.strip() == shown


@pytest.mark.row("A185")
def test_the_page_of_differences_covers_outdated_teachings() -> None:
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (?!Often|---)(.*?) \|", text)
    for taught in ("random from the ISR", "pushes records", "assigns partitions", "mmap"):
        assert any(taught in row for row in rows)
    for file in re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", text):
        assert (ROOT / "src" / "penstock" / file).exists(), file
