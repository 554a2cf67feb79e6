"""The time index in a file."""

import asyncio
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.retry.store.sqlite import SqliteIndex


def test_a_store_has_one_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.retry.store.sqlite.LOCKED_S", 0.05)
    first = SqliteIndex(tmp_path / "s")
    with pytest.raises(ConfigError, match="is used by another delay service"):
        SqliteIndex(tmp_path / "s")
    asyncio.run(first.close())
    asyncio.run(SqliteIndex(tmp_path / "s").close())
