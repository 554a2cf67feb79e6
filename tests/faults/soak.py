"""Faults in random order by seed, for as long as wanted; the results of all runs are kept in a
file.

`make faults ARGS="--minutes 20 --seed 7"` draws faults of all kinds, each under load and judged by
the checker. A broken promise ends the run with its seed and fault. `ARGS=--sum` prints a summary of
all runs.
"""

import argparse
import json
import pickle
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faults import interposed, links
from faults.catalog import DISKS, LINKS, PROCESSES, SESSIONS, Fault
from faults.interposed import MachineCluster
from faults.machine_catalog import MACHINES
from faults.queue_witness import DelayWitness, QueueWitness
from faults.scenario import BrokenPromiseError, Clients, survives
from faults.stage import BROKERS, QUICK_GROUPS, SETTINGS, Stage
from faults.witness import FRANZ, KAFKA, KAFKA_NEXT
from peers.zookeeper import ZooKeeper

RESULTS = Path("build") / "faults.jsonl"
BURST, MORE = 150, 20_000
"""More records than in other tests, where no witness has to read all of them too."""
WITNESSES: dict[str, Clients | None] = {
    "librdkafka": None,
    "franz-go": FRANZ,
    "Java": KAFKA,
    "Java, consumer protocol": KAFKA_NEXT,
    "share group": QueueWitness,
    "delay topic": DelayWitness,
}
"""The clients beside librdkafka's, which write and read always."""
DRAWN = (
    ["librdkafka"] * 4
    + ["franz-go"] * 2
    + [
        "Java",
        "Java, consumer protocol",
        "share group",
        "delay topic",
    ]
)


def kinds() -> dict[str, Fault]:
    """The faults that can be caused on this machine."""
    usable = {} if links.unusable() else LINKS
    return {**PROCESSES, **SESSIONS, **DISKS, **MACHINES, **usable}


@contextmanager
def stage() -> Iterator[Stage]:
    settings = {**SETTINGS, **QUICK_GROUPS}
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        MachineCluster(zookeeper.connect, settings=settings, apart=True) as brokers,
    ):
        yield Stage(zookeeper, brokers)


def run(seed: int, minutes: float, only: str | None, clients: str | None, results: Path) -> int:
    possible = kinds()
    if only is not None:
        possible = {name: fault for name, fault in possible.items() if only in name}
    names, dice = sorted(possible), random.Random(seed)
    results.parent.mkdir(parents=True, exist_ok=True)
    end_s, waiting = time.monotonic() + minutes * 60, list[str]()
    with stage() as made, results.open("a", encoding="utf-8") as file:
        number = 0
        while time.monotonic() < end_s:
            waiting = waiting or dice.sample(
                names, len(names)
            )  # every kind once before any is repeated
            name, number = waiting.pop(), number + 1
            client = dice.choice(DRAWN) if clients is None else clients
            if client == "delay topic" and "clock" in name:
                client = "librdkafka"  # delayed records are early by that clock
            reported: dict[str, Any] = {"seed": seed, "number": number, "fault": name}
            reported["client"] = client
            reported["at"] = datetime.now(UTC).isoformat(timespec="seconds")
            began_s = time.monotonic()
            try:
                kind = WITNESSES[client]
                much = {} if kind else {"burst": BURST, "more": MORE}
                reported |= survives(made, possible[name], kind, **much)._asdict()
            except KeyboardInterrupt:
                break
            except Exception as broken:
                kept = results.parent / f"faults-{seed}-{number}"
                keep(made, broken, kept)
                reported["kept"] = str(kept)
                file.write(json.dumps({**reported, "broken": repr(broken)[:2000]}) + "\n")
                sys.stderr.write(f"faults: seed {seed}, fault {number} ({name}): {broken!r}\n")
                raise
            reported["seconds"] = round(time.monotonic() - began_s, 1)
            file.write(json.dumps(reported) + "\n")
            file.flush()
    sys.stdout.write(summary(results))
    return 0


def keep(stage: Stage, broken: Exception, folder: Path) -> None:
    """Keeps what the brokers wrote and printed, and the history, to find the cause."""
    stage.brokers.kill(*range(BROKERS))
    shutil.copytree(stage.brokers.data_dir(0).parents[2], folder, dirs_exist_ok=True)
    if isinstance(broken, BrokenPromiseError):
        (folder / "history").write_bytes(pickle.dumps(broken.history))


def summary(results: Path) -> str:
    """A summary of all runs in the file, one line per kind."""
    found = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    whole = [each for each in found if "broken" not in each]
    hours = sum(each["seconds"] for each in whole) / 3600
    kinds_met, seeds = {each["fault"] for each in found}, sorted({each["seed"] for each in found})
    acknowledged = sum(each["acknowledged"] for each in whole)
    transactions = sum(each["transactions"] for each in whole)
    lines = [
        f"{len(found)} faults of {len(kinds_met)} kinds in {hours:.2f} h, seeds {seeds}",
        f"{len(found) - len(whole)} broke a promise",
        f"{acknowledged:,} records acknowledged, {transactions:,} transactions",
    ]
    for name in sorted({each["fault"] for each in whole}):
        gaps = [each["longest_gap_s"] for each in whole if each["fault"] == name]
        lines.append(f"{name}: {len(gaps)} times, longest pause of a partition {max(gaps):.1f} s")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--only", help="faults whose name has this in it")
    parser.add_argument("--clients", choices=WITNESSES, help="the same ones beside each fault")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--sum", action="store_true", help="run nothing, say what runs came to")
    given = parser.parse_args()
    for each in (signal.SIGINT, signal.SIGTERM):  # in the background SIGINT is ignored otherwise
        signal.signal(each, signal.default_int_handler)
    if (reason := interposed.unusable()) is not None:
        parser.error(reason)
    if given.sum:
        sys.stdout.write(summary(given.results))
        return 0
    return run(given.seed, given.minutes, given.only, given.clients, given.results)


if __name__ == "__main__":
    sys.exit(main())
