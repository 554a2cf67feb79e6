"""python -m bench [NAME] [options]; without a name, all benches that need no other broker.

Benches assert nothing: they print figures beside their budgets, or beside Apache Kafka's.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

from bench.interpreter import described

PURE = ("wire", "record", "log", "compaction")
BESIDE_OTHERS = (
    "broker",
    "clients",
    "groups",
    "growth",
    "metrics",
    "page",
    "sdk",
    "security",
    "registry",
    "share",
    "search",
    "spark",
    "stalls",
    "spark_write",
    "streams",
    "transactions",
    "cluster",
    "console",
    "delay",
    "workers",
)


def main(argv: list[str]) -> int:
    name, *rest = argv or ["all"]
    # Run with bytecode, as installed; otherwise each start would compile the modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(described(), flush=True)
    if name in BESIDE_OTHERS:
        # The tests' helpers start the real Kafka or Spark.
        sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
        import_module(f"bench.{name}").main(rest)
    elif name == "all" or (name in PURE and not rest):
        for each in PURE if name == "all" else (name,):
            print(f"-- {each}")
            import_module(f"bench.{each}").main()
    else:
        print(f"usage: python -m bench [{'|'.join((*PURE, *BESIDE_OTHERS))}] [options]")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
