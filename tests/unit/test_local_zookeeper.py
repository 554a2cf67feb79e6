"""Where `penstock cluster` finds a ZooKeeper."""

from pathlib import Path

import pytest

from penstock.local import zookeeper


def test_the_zookeeper_of_pyspark_is_used_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_ZOOKEEPER_CLASSPATH", raising=False)
    *_, last = zookeeper._classpaths()
    assert last.endswith("/pyspark/jars/*")
    monkeypatch.setenv("PENSTOCK_ZOOKEEPER_CLASSPATH", "/mine/*")
    assert zookeeper.classpath() == "/mine/*"
