"""The valid files of a lake: those that its log of finished micro-batches names.

Files that a killed task left behind are in the same folder, and a reader that follows the log
ignores them.
"""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq


def parquet_files(folder: Path) -> list[Path]:
    """According to the log of Spark's file sink, in which every tenth entry contains all
    before it.
    """
    log = folder / "_spark_metadata"
    if not log.exists():
        return []
    entries = [each for each in log.iterdir() if each.name.split(".")[0].isdigit()]
    entries.sort(key=lambda each: int(each.name.split(".")[0]))
    last = max((n for n, each in enumerate(entries) if each.suffix == ".compact"), default=0)
    return [
        Path(unquote(urlsplit(json.loads(line)["path"]).path))
        for each in entries[last:]
        for line in each.read_text().splitlines()[1:]  # the first line is the log's version
    ]


def delta_files(folder: Path) -> list[Path]:
    """According to Delta's log, from its first entry on."""
    found: dict[str, Path] = {}
    for each in sorted((folder / "_delta_log").glob("*.json")):
        for line in each.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                path = action["add"]["path"]
                found[path] = folder / unquote(path)
            elif "remove" in action:
                found.pop(action["remove"]["path"], None)
    return list(found.values())


def rows(folder: Path) -> list[dict[str, object]]:
    """A table without partitions, as another Parquet reader sees it."""
    found: list[dict[str, object]] = pq.read_table(folder).to_pylist()
    return found
