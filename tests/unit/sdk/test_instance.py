"""The persistent name of one instance of an application."""

from pathlib import Path

import pytest

from penstock.sdk.instance import Instance


def test_a_name_is_persistent_and_has_one_owner(tmp_path: Path) -> None:
    first, second = Instance(tmp_path, "a/b"), Instance(tmp_path, "a/b")
    assert first.name != second.name
    first.close()
    again = Instance(tmp_path, "a/b")
    assert again.name == first.name
    second.close()
    again.close()
    assert [each.name for each in tmp_path.iterdir()] == ["a%2Fb"]


def test_a_half_written_name_is_replaced(tmp_path: Path) -> None:
    first = Instance(tmp_path, "g")
    first.close()
    (tmp_path / "g" / "instance-1").write_bytes(b"0123")
    second = Instance(tmp_path, "g")
    second.close()
    assert len(second.name) == 32
    assert second.name != first.name


def test_without_a_folder_the_name_is_new_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    names = {Instance(tmp_path / "file", "g").name for _ in range(2)}
    assert len(names) == 2
    assert "will end by its time-out" in caplog.text
