"""The name of a delay service, by its folder."""

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.retry.instance import instance_of


def test_a_restarted_service_keeps_its_name_and_a_second_one_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.retry.instance.ENDING_S", 0.1)
    with instance_of(tmp_path / "d") as first, instance_of(tmp_path / "d") as second:
        assert first != second
    with instance_of(tmp_path / "d") as again:
        assert again == first


@pytest.mark.parametrize("left", ["", "12ab", "\x00" * 32])
def test_a_file_left_half_written_by_a_crash_is_replaced(tmp_path: Path, left: str) -> None:
    (tmp_path / "instance").write_text(left)
    with instance_of(tmp_path) as name:
        assert len(name) == 32
        assert (tmp_path / "instance").read_text() == name


def test_an_error_names_an_unusable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file"), instance_of(tmp_path / "file"):
        pass
