"""A process killed during writes leaves every answered transaction, and none in part."""

import random
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from penstock.clock import SystemClock
from penstock.metadata.tree import FILE_NAME, Tree

KEPT = 5
"""The size of a window of nodes that each transaction moves by one and whose position it records.
"""

WRITER = """
import sys
from pathlib import Path
from penstock.clock import SystemClock
from penstock.metadata.store import Create, Delete, Set
from penstock.metadata.tree import Tree

tree, kept = Tree.open(Path(sys.argv[1]), SystemClock()), int(sys.argv[2])
session = tree.open_session()
if not tree.children("/"):
    tree.apply(session, [[Create("/end", b"0"), Create("/window")]])
tree.apply(session, [[Create("/live", ephemeral=True)]])
end = int(tree.get("/end").data)
while True:
    operations = [Set("/end", b"%d" % (end + 1)), Create(f"/window/{end}", bytes(3000))]
    if end >= kept:
        operations.append(Delete(f"/window/{end - kept}"))
    (answers,) = tree.apply(session, [operations])
    assert isinstance(answers, list), answers
    end += 1
    print(end, flush=True)
"""


def killed_writer(path: Path, after: int) -> int:
    """The last transaction that the writer knew to be committed."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(KEPT)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(after):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    said = process.stdout.read().split()
    process.stdout.close()
    process.wait()
    return int(said[-1]) if said else -1


def test_a_killed_process_leaves_whole_transactions(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    chance = random.Random(5)
    end = 0
    for _ in range(5):
        answered = killed_writer(path, after=chance.randrange(1, 60))
        with closing(Tree.open(path, SystemClock())) as tree:
            node = tree.get("/end")
            before, end = end, int(node.data or b"")
            assert end >= answered
            assert end > before
            assert node.version == end
            window = sorted(int(name) for name in tree.children("/window"))
            assert window == list(range(max(0, end - KEPT), end))
            assert tree.children("/") == ["end", "window"]
            (sound,) = tree._connection.execute("PRAGMA integrity_check").fetchone()
            assert sound == "ok"
