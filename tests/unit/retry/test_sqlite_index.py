"""The time index in a file."""

import asyncio
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.retry.store.index import Entry, StoreChanged
from penstock.retry.store.sqlite import SqliteIndex
from penstock.types import Offset
from support.retry.time_index import KEY, check_time_index, overwritten


def test_a_store_has_one_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.retry.store.sqlite.LOCKED_S", 0.05)
    first = SqliteIndex(tmp_path / "s")
    with pytest.raises(ConfigError, match="is used by another delay service"):
        SqliteIndex(tmp_path / "s")
    asyncio.run(first.close())
    asyncio.run(SqliteIndex(tmp_path / "s").close())


def test_the_index_fulfils_the_contract(tmp_path: Path) -> None:
    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        await check_time_index(index)
        await index.close()

    asyncio.run(scenario())


def test_a_file_that_breaks_while_in_use_is_rebuilt(tmp_path: Path) -> None:
    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        await index.reset(KEY, Offset(0))
        entries = [Entry(each, each) for each in range(20_000)]
        await index.put(KEY, entries, since=Offset(0), to=Offset(20_000))
        overwritten(index, tmp_path / "s")
        with pytest.raises(StoreChanged, match="is broken and is built again"):
            await index.remove(KEY, range(20_000))
        assert await index.indexed_to(KEY) is None
        await index.reset(KEY, Offset(0))
        await index.put(KEY, entries[:2], since=Offset(0), to=Offset(2))
        assert await index.due(KEY, 9, 9) == entries[:2]
        await index.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("is_own", [True, False])
def test_a_file_that_is_not_a_database_is_replaced_only_in_the_services_own_folder(
    tmp_path: Path, is_own: bool
) -> None:
    file = tmp_path / "s"
    file.write_bytes(b"somebody's notes" * 100)
    if is_own:
        asyncio.run(SqliteIndex(file, is_own=True).close())
        assert (tmp_path / "s.broken").read_bytes().startswith(b"somebody's")
    else:
        with pytest.raises(ConfigError, match="not a database; it is a cache: you may delete it"):
            SqliteIndex(file)
        assert file.read_bytes().startswith(b"somebody's")
