"""The file with which a restarted broker ends its former ZooKeeper session."""

from pathlib import Path

import pytest

from penstock.metadata.zookeeper.session import SessionKey
from penstock.metadata.zookeeper.session_file import FILE_NAME, SessionFile

KEY = SessionKey(-5, b"\x00\xffsixteen bytes.")


def test_the_key_survives_the_process(tmp_path: Path) -> None:
    assert SessionFile(tmp_path).read() is None
    SessionFile(tmp_path).write(KEY)
    assert SessionFile(tmp_path).read() == KEY
    assert [each.name for each in tmp_path.iterdir()] == [FILE_NAME]


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    SessionFile(tmp_path).write(KEY)
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_a_later_session_replaces_the_former_key(tmp_path: Path) -> None:
    file = SessionFile(tmp_path)
    file.write(KEY)
    file.write(SessionKey(6, b"other"))
    assert file.read() == SessionKey(6, b"other")
    file.delete()
    file.delete()
    assert file.read() is None
    file.write(SessionKey(6, b"other"))
    assert file.read() == SessionKey(6, b"other")


def test_a_copy_of_the_directory_has_no_key(tmp_path: Path) -> None:
    original, copied = tmp_path / "original", tmp_path / "copy"
    original.mkdir()
    copied.mkdir()
    SessionFile(original).write(KEY)
    (copied / FILE_NAME).write_bytes((original / FILE_NAME).read_bytes())
    assert SessionFile(copied).read() is None


@pytest.mark.parametrize("held", [b"", b"{", b"[]", b'{"version":1}', b"\xff"])
def test_an_unreadable_file_is_ignored(
    tmp_path: Path, held: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).write_bytes(held)
    assert SessionFile(tmp_path).read() is None
    assert "ignoring the file" in caplog.text


def test_a_key_of_a_later_penstock_version_is_kept(tmp_path: Path) -> None:
    SessionFile(tmp_path).write(KEY)
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2'))
    assert SessionFile(tmp_path).read() is None


def test_an_unwritable_directory_does_not_stop_a_broker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    SessionFile(tmp_path / "absent").write(KEY)
    assert "the next restart may have to wait" in caplog.text
