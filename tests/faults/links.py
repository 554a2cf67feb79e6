"""Cuts links between loopback addresses with nft: packets are dropped silently."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

TABLE = f"penstock_faults_{os.getpid()}"


def unusable() -> str | None:
    """The reason why links cannot be cut on this machine; None if they can."""
    nft = shutil.which("nft")
    if nft is None:
        return "nft is not installed"
    probe = f"penstock_probe_{os.getpid()}"
    add = [nft, "add", "table", "inet", probe]
    made = subprocess.run(add, capture_output=True, text=True, check=False)
    if made.returncode:
        return f"nft may not be used here: {made.stderr.strip().splitlines()[0]}"
    subprocess.run([nft, "delete", "table", "inet", probe], check=True)
    return None


@contextmanager
def cut(*one_way: tuple[str, str]) -> Iterator[None]:
    """Drops everything from the first address of each pair to the second, until the block ends."""
    rules = [f"ip saddr {source} ip daddr {sink} drop" for source, sink in one_way]
    chain = ["chain links {", "type filter hook input priority 0", *rules, "}"]
    table = "\n".join([f"table inet {TABLE} {{", *chain, "}", ""])
    subprocess.run(["nft", "-f", "-"], input=table, text=True, check=True)
    try:
        yield
    finally:
        subprocess.run(["nft", "delete", "table", "inet", TABLE], check=True)


def both_ways(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    return [link for a, b in pairs for link in ((a, b), (b, a))]
