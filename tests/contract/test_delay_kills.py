"""Kill -9 of delay service, broker and store: nothing is lost, repeated or early."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from peers.hbase import HBase
from peers.mariadb import MariaDb
from peers.postgres import Postgres
from peers.redis import RedisServer
from support.retry.kills import Kills

SERVERS = {"redis": RedisServer, "mariadb": MariaDb, "postgres": Postgres, "hbase": HBase}
STORES = ("sqlite", "redis", "mariadb", "postgres")
"""The stores of a quick run; HBase takes half a minute to come back from each kill."""
SOAKED = ("sqlite", *SERVERS)

pytestmark = pytest.mark.peer


def killed(run: Kills, store: str, folder: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(SERVERS[store]()) if store in SERVERS else None
        run.run(folder, server, server.url if server else "sqlite")
    run.check()


@pytest.mark.row("A120", "A122", "A124")
@pytest.mark.parametrize("store", STORES)
def test_kills_neither_lose_nor_repeat_records(store: str, tmp_path: Path) -> None:
    killed(Kills(seed=STORES.index(store), records=1000, spread_s=4, kills=3), store, tmp_path)


@pytest.mark.row("A124")
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(20))
def test_many_kills_neither_lose_nor_repeat_records(seed: int, tmp_path: Path) -> None:
    store = SOAKED[seed % len(SOAKED)]
    killed(Kills(seed=seed, records=20_000, spread_s=30, kills=15), store, tmp_path)
