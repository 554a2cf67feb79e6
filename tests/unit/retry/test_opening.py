"""Which store `penstock.delay.store` names, and the errors about unknown ones."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from penstock.config.extra import install
from penstock.errors import ConfigError
from penstock.retry.store.opening import open_store


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("", "must be sqlite, sqlite:FILE, redis://"),
        ("sqlite:", "needs the path of a file"),
        ("sqlite:///x", "must be sqlite, sqlite:FILE"),
        ("mongodb://u:geheim@h", "must be sqlite.*not 'mongodb'"),
        ("redis://:geheim@h:port/0", "the URL of the Redis store is not redis://"),
        ("mysql://u:geheim@h:port/d", "mysql://… names no store"),
        ("postgresql+none://u:geheim@h/d", r"postgresql\+none://… names no store"),
        ("hbase://", "is not hbase://HOST:PORT/TABLE"),
        ("hbase://u:geheim@h", "its Thrift server has no passwords"),
        ("hbase://h?transport=tcp", "transport=tcp is not known"),
    ],
)
def test_an_error_about_an_unknown_store_hides_its_password(
    store: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        open_store(store, tmp_path)
    assert str(refused.value).startswith("penstock.delay.store")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    ("store", "module", "package"),
    [
        ("redis://h", "redis", "redis"),
        ("mysql://h/d", "sql", "pymysql"),
        ("postgresql://h/d", "sql", "psycopg"),
        ("hbase://h", "hbase", "happybase"),
    ],
)
def test_an_error_about_a_missing_package_has_the_install_command(
    store: str, module: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (package, f"{package}.asyncio"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"penstock.retry.store.{module}", raising=False)
    with pytest.raises(ConfigError, match=re.escape(f"{package}: {install('retry')}")):
        open_store(store, tmp_path)


def test_the_embedded_store_is_a_file_in_the_folder(tmp_path: Path) -> None:
    asyncio.run(open_store("sqlite", tmp_path / "delay").close())
    assert (tmp_path / "delay" / "index.sqlite").exists()
    asyncio.run(open_store(f"sqlite:{tmp_path}/other", tmp_path).close())
    assert (tmp_path / "other").exists()
