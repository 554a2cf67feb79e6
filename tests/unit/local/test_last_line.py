"""Why a process did not start, found in its output."""

from pathlib import Path

from penstock.local.process import last_line


def test_the_log_of_a_broker_in_the_same_file_does_not_hide_the_error_of_another(
    tmp_path: Path,
) -> None:
    output = tmp_path / "penstock.log"
    before = output.write_text("penstock: an older failure\n")
    output.write_text(
        f"{output.read_text()}"
        "penstock: --dir d is in use: a broker runs there\n"
        "[2026-01-01 00:00:00,000] INFO 2 workers are ready\n"
    )
    assert last_line(output, before, is_shared=True).startswith("--dir d is in use")
    assert last_line(output, before).endswith("2 workers are ready")


def test_an_error_without_the_program_name_is_returned_unchanged(tmp_path: Path) -> None:
    output = tmp_path / "penstock.log"
    output.write_text("No module named penstock\n")
    assert last_line(output, is_shared=True) == "No module named penstock"
