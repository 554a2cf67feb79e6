"""Builds the documentation as a site: build/site/index.html, from README and docs/.

Neither the build nor the site needs a network. `ORDER` has the order of the pages. Links between
two pages lead to their addresses in the site; a link to another file leads to a copy of it.
"""

import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"

ORDER: Mapping[str, tuple[str, ...]] = {
    "Start": ("README.md", "docs/start.md", "docs/tour.md"),
    "Concepts": ("docs/concepts.md", "docs/glossary.md"),
    "Guides": (
        "docs/delivery.md",
        "docs/groups.md",
        "docs/queues.md",
        "docs/delay.md",
        "docs/delay-compared.md",
        "docs/registry.md",
        "docs/console.md",
        "docs/commands.md",
        "docs/kafka-commands.md",
    ),
    "Operations": (
        "docs/deployment.md",
        "docs/cluster.md",
        "docs/workers.md",
        "docs/security.md",
        "docs/monitoring.md",
        "docs/backup.md",
        "docs/formats.md",
    ),
    "Spark": ("docs/pipelines.md", "docs/spark.md", "docs/spark-sink.md"),
    "SDK": ("docs/sdk.md",),
    "Reference": ("docs/cli.md", "docs/settings.md", "docs/compatibility.md"),
    "Proof": ("docs/benchmarks.md", "docs/reliability.md", "docs/rows.md"),
    "Questions": ("docs/differences.md", "docs/faq.md"),
    "Project": (
        "docs/architecture.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "RELEASING.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
    ),
}

STYLE = Path(__file__).with_name("site.css")


class Page(NamedTuple):
    """A page of the site."""

    source: str
    title: str
    body: str
    anchors: frozenset[str]
    links: tuple[str, ...]
    """Link targets as written, without links to other sites."""


def address(source: str) -> str:
    if source == "README.md":
        return "index.html"
    name = Path(source).stem.lower().replace("_", "-")
    return f"{name}.html" if source.startswith("docs/") else f"project-{name}.html"


def sources() -> list[str]:
    return [each for pages in ORDER.values() for each in pages]


def page(source: str) -> Page:
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse((ROOT / source).read_text(encoding="utf-8"))
    anchors: list[str] = []
    links: list[str] = []
    title = source
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            text = tokens[at + 1].content
            anchor = slug(text)
            if anchor in anchors:
                anchor = f"{anchor}-{sum(each.startswith(anchor) for each in anchors)}"
            anchors.append(anchor)
            token.attrSet("id", anchor)
            title = text if token.tag == "h1" and title == source else title
        for child in _links(token):
            target = str(child.attrGet("href" if child.type == "link_open" else "src") or "")
            if "://" not in target and not target.startswith("mailto:"):
                links.append(target)
                name = "href" if child.type == "link_open" else "src"
                child.attrSet(name, _translated(source, target))
    body = parser.renderer.render(tokens, parser.options, {})
    return Page(source, title, body, frozenset(anchors), tuple(links))


def slug(text: str) -> str:
    """A heading's anchor, as code hosts form it."""
    return re.sub(r"[^\w\- ]", "", text.replace("`", "").lower()).strip().replace(" ", "-")


def resolved(source: str, target: str) -> str:
    """The file in the repository that a page's link leads to."""
    path = target.partition("#")[0]
    if not path:
        return source
    return str(((ROOT / source).parent / path).resolve().relative_to(ROOT))


def _links(token: Token) -> Iterator[Token]:
    for child in token.children or ():
        if child.type in {"link_open", "image"}:
            yield child


def _translated(source: str, target: str) -> str:
    path, hash_sign, anchor = target.partition("#")
    found = resolved(source, path)
    if found in sources():
        return (address(found) if path else "") + hash_sign + anchor
    return f"files/{found}" if (ROOT / found).is_file() else found


def _document(found: Page, titles: Mapping[str, str]) -> str:
    groups = []
    for group, pages in ORDER.items():
        groups.append(f"<b>{escape(group)}</b>")
        for each in pages:
            here = ' class="here"' if each == found.source else ""
            name = "Overview" if each == "README.md" else titles[each]
            groups.append(f'<a{here} href="{address(each)}">{escape(name)}</a>')
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(found.title)} - Penstock</title><style>{STYLE.read_text()}</style></head>"
        f"<body><nav>{''.join(groups)}</nav><main>{found.body}</main></body></html>\n"
    )


def build(target: Path = SITE) -> list[Page]:
    """Write the site; returns its pages."""
    shutil.rmtree(target, ignore_errors=True)
    pages = [page(each) for each in sources()]
    titles = {each.source: each.title for each in pages}
    target.mkdir(parents=True)
    for each in pages:
        (target / address(each.source)).write_text(_document(each, titles), encoding="utf-8")
        for link in each.links:
            file = resolved(each.source, link)
            if file not in sources() and (ROOT / file).is_file():
                copy = target / "files" / file
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / file, copy)
    return pages


if __name__ == "__main__":
    made = build()
    sys.stdout.write(f"{len(made)} pages: {SITE / 'index.html'}\n")
