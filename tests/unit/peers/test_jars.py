"""Where the jars of the peers are found."""

from pathlib import Path

import pytest

from peers import jars


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    return tmp_path / "peers"


def install(cache: Path, name: str, *files: str) -> Path:
    folder = cache / "jars" / name
    folder.mkdir(parents=True)
    for file in (*files, "coordinates"):
        (folder / file).touch()
    return folder


def test_the_cache_is_in_the_users_folder_unless_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PENSTOCK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/of-the-user")
    assert jars.cache() == Path("/of-the-user/penstock/peers")
    monkeypatch.setenv("PENSTOCK_CACHE", "/named")
    assert jars.cache() == Path("/named/peers")


def test_an_error_about_a_missing_package_names_the_installer(cache: Path) -> None:
    (cache / "jars" / "kafka-1.0.0").mkdir(parents=True)  # an interrupted installation
    with pytest.raises(jars.NotInstalledError, match="run scripts/install-peers first"):
        jars.classpath("kafka-1.0.0")


def test_a_jar_is_found_beside_one_with_a_longer_name(cache: Path) -> None:
    folder = install(cache, "kafka-1.0.0", "kafka-raft-1.0.0.jar", "kafka-raft-api-1.0.0.jar")
    assert jars.jar("kafka-1.0.0", "kafka-raft") == folder / "kafka-raft-1.0.0.jar"
    with pytest.raises(jars.NotInstalledError):
        jars.jar("kafka-1.0.0", "kafka-server")
