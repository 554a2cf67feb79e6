"""`penstock logs --follow` reads on when the log is rotated."""

from pathlib import Path

from penstock.cli.logs import added_lines


def test_what_is_added_ends_when_the_log_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "penstock.log"
    path.write_text("first\n")
    with path.open("rb") as file:
        lines = added_lines(file, path)
        assert next(lines) == b"first\n"
        with path.open("a") as log:
            log.write("last\n")
        path.rename(tmp_path / "penstock.log.1")
        path.write_text("in the new file\n")
        assert list(lines) == [b"last\n"]
