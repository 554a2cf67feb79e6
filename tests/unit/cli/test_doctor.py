"""Which logs `doctor --folder` looks into."""

from pathlib import Path

from penstock.cli.doctor import folder_snapshot
from penstock.local.workers.layout import Layout, write_layout
from penstock.log.disk import DiskFiles


def test_the_logs_of_every_worker_are_checked(tmp_path: Path) -> None:
    write_layout(DiskFiles(), tmp_path, Layout(workers=2))
    for worker in ("worker.0", "worker.1"):
        partition = tmp_path / "logs" / worker / "t-0"
        partition.mkdir(parents=True)
        (partition / f"{0:020}.log").write_bytes(b"damaged" * 20)
    seen = folder_snapshot(tmp_path)
    assert seen.has_logs
    for worker in ("worker.0", "worker.1"):
        assert any(worker in each for each in seen.damage)
