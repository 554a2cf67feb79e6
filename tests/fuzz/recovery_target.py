"""Fuzz target: whatever lies in the files of a log, a broker that starts after a crash reads it.

PYTHONPATH=src:tests python -m fuzz recovery -max_total_time=60
"""

from contextlib import suppress

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.record.batch import CorruptBatch
from penstock.testing.logs import ROOT, LogRig, batch_of

CONFIG = TopicConfig(segment_bytes=1_000, index_interval_bytes=200, segment_index_bytes=1_200)
FOLDER = ROOT / "d0" / "orders-0"
BASE = "00000000000000000000"
FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
OTHERS = ("leader-epoch-checkpoint", "partition.metadata")


def fuzz_recovery(data: bytes) -> None:
    """The first byte chooses a file, and whether `data` is appended to it or replaces it."""
    choice, rest = (data[0], data[1:]) if data else (0, b"")
    rig = LogRig(CONFIG)
    for number in range(4):
        rig.append(batch_of(b"%d" % number, producer_id=9, sequence=number))
    rig.flush()
    names = [BASE + suffix for suffix in FILES] + list(OTHERS)
    path = FOLDER / names[choice % len(names)]

    def damage() -> None:
        with suppress(StorageError):
            file = rig.fake.open(path, create=True)
            if choice & 0x80:
                file.truncate(0)
            file.append(rest)
            file.sync()

    rig.crash(damage=damage)
    if not rig.offline:
        with suppress(CorruptBatch):  # records inside a batch with a matching CRC
            found = rig.read_all()
            assert choice & 0x80 or found[:4] == [(n, b"%d" % n) for n in range(4)]
        rig.append(batch_of(b"later"))
