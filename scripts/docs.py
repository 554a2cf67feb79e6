"""Write the pages under docs/ that are generated from the code; with --check, list stale ones."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.broker.pages.compatibility import compatibility_page
from penstock.cli.docs import cli_page
from penstock.config.docs import settings_page

DOCS = Path(__file__).resolve().parent.parent / "docs"

PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "compatibility.md": compatibility_page,
    "settings.md": settings_page,
}


def drifted() -> list[str]:
    """The pages whose file differs from what the code generates."""
    return [name for name, render in PAGES.items() if _text(DOCS / name) != render()]


def write() -> None:
    DOCS.mkdir(exist_ok=True)
    for name, render in PAGES.items():
        (DOCS / name).write_text(render(), encoding="utf-8")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        stale = drifted()
        for name in stale:
            print(f"docs/{name} differs from the code: run scripts/docs.py", file=sys.stderr)
        return 1 if stale else 0
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
