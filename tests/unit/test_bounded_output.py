"""The output of a server that does not rotate it itself."""

import os
import subprocess
import sys
from pathlib import Path

from penstock.local import bounded_file
from penstock.local.process import last_line, start


def test_the_current_file_and_the_previous_one_are_kept(tmp_path: Path) -> None:
    source, sink = os.pipe()
    path = tmp_path / "output"
    path.write_bytes(b"earlier\n")
    writing = subprocess.Popen(
        [sys.executable, "-c", "for n in range(9999): print(f'{n:09}')"], stdout=sink
    )
    os.close(sink)
    bounded_file.copy(source, path, 1000)
    os.close(source)
    assert writing.wait() == 0
    kept = (tmp_path / "output.1").read_bytes() + path.read_bytes()
    assert [each.stat().st_size <= 1000 for each in tmp_path.iterdir()] == [True, True]
    assert len(kept) > 1000
    assert kept.endswith(b"000009998\n")
    assert kept[-100:] == b"".join(b"%09d\n" % number for number in range(9989, 9999))


def test_a_full_disk_does_not_stop_the_server(tmp_path: Path) -> None:
    source, sink = os.pipe()
    os.write(sink, b"x" * 5000)
    os.close(sink)
    path = tmp_path / "output"
    path.symlink_to("/dev/full")
    bounded_file.copy(source, path, 1 << 20)
    assert os.read(source, 1) == b""
    os.close(source)


def test_the_last_output_of_a_process_is_written_after_its_end(tmp_path: Path) -> None:
    output = tmp_path / "folder" / "output"
    code = "import time; print('it begins', flush=True); time.sleep(0.2); print('no such jar')"
    started = start([sys.executable, "-c", code], output, bounded=True)
    while started.is_alive():
        pass
    assert last_line(output) == "no such jar"
