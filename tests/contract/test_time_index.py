"""The time index in database servers: the contract, and the errors when a server is wrong
or down.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from peers.hbase import HBase
from peers.mariadb import MariaDb
from peers.postgres import Postgres
from peers.redis import RedisServer
from peers.servers import Servers
from penstock.retry.store.index import DueStoreUnavailable, DueTimeIndex, Entry, IndexKey
from penstock.retry.store.opening import open_store
from penstock.types import Offset
from support.retry.time_index import KEY, check_time_index

pytestmark = pytest.mark.peer

AGAIN = IndexKey(KEY.topic_id, 2)
SERVERS = {"redis": RedisServer, "mariadb": MariaDb, "postgres": Postgres}


@contextmanager
def started(name: str) -> Iterator[tuple[Servers, DueTimeIndex]]:
    with SERVERS[name]() as server:
        yield server, open_store(server.url, Path("unused"))


async def asked_until_it_fails(index: DueTimeIndex) -> None:
    """Queries until the server's death is noticed. PostgreSQL's process for a connection ends a
    moment after the server.
    """
    while True:
        await index.due(AGAIN, 9, 9)
        await asyncio.sleep(0.05)


@pytest.mark.row("A122", "A124")
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_keeps_the_contract_and_its_death_is_an_error(name: str) -> None:
    with started(name) as (server, index):

        async def scenario() -> None:
            await check_time_index(index)
            await index.reset(AGAIN, Offset(0))
            await index.put(AGAIN, [Entry(5, 1)], since=Offset(0), to=Offset(2))
            server.kill(0)
            with pytest.raises(DueStoreUnavailable, match=r"the \w+ store failed"):
                await asyncio.wait_for(asked_until_it_fails(index), 10)
            server.output(0).write_text("")  # so that the old "ready" is not found again
            server.start(0)
            found = await index.indexed_to(AGAIN)
            assert found in (None, 0, 2)  # entries and position are lost together or not at all
            assert await index.due(AGAIN, 9, 9) == ([Entry(5, 1)] if found == 2 else [])
            await index.close()

        asyncio.run(scenario())


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.row("A124")
def test_hbase_keeps_the_contract() -> None:
    async def scenario(url: str) -> None:
        index = open_store(url, Path("unused"))
        await check_time_index(index)
        await index.close()

    with HBase() as hbase:
        asyncio.run(scenario(hbase.url))
