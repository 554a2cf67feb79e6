"""The time index in Redis: a sorted set of offsets by due time for each partition.

The set also has the offset up to which it is indexed, as a member with a negative score, so that
Redis loses both together. Fields that a plain record does not need are in a hash beside it.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError, WatchError

from penstock.errors import ConfigError
from penstock.retry.store.index import (
    PAGE,
    DueKind,
    DueStoreUnavailable,
    Entry,
    IndexKey,
    StoreChanged,
)
from penstock.types import Offset, uuid_text

CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0
UNTIL: Final = b"until"
MORE: Final = b"+"
"""Suffix of a member whose entry has more fields in the hash."""


class RedisIndex:
    """Implements `TimeIndex`. Fit for Redis Cluster: the keys of a partition share a hash tag."""

    def __init__(self, url: str) -> None:
        """Does not connect yet."""
        try:
            self._redis: Any = Redis.from_url(
                url, socket_connect_timeout=CONNECT_S, socket_timeout=ANSWER_S
            )
        except (ValueError, TypeError):
            raise ConfigError(
                "the URL of the Redis store is not redis://:PASSWORD@HOST:PORT/DATABASE, "
                "or rediss:// for TLS"
            ) from None

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        with _errors():
            return _until(await self._redis.zscore(_due(key), UNTIL))

    async def reset(self, key: IndexKey, to: Offset) -> None:
        with _errors():
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(_due(key), _more(key))
                pipe.zadd(_due(key), {UNTIL: -1 - to})
                await pipe.execute()

    async def put(
        self, key: IndexKey, entries: Sequence[Entry], *, since: Offset, to: Offset
    ) -> None:
        with _errors():
            async with self._redis.pipeline(transaction=True) as pipe:
                await pipe.watch(_due(key))
                if _until(await pipe.zscore(_due(key), UNTIL)) != since:
                    raise StoreChanged("the Redis store lost entries, or another program writes it")
                pipe.multi()
                _remove(pipe, key, [each.offset for each in entries if each.offset < since])
                plain = [each for each in entries if _is_plain(each)]
                more = [each for each in entries if not _is_plain(each)]
                scores: dict[bytes, float] = {_member(each.offset): each.due_ms for each in plain}
                scores |= {_member(each.offset) + MORE: each.due_ms for each in more}
                pipe.zadd(_due(key), {**scores, UNTIL: -1 - to})
                if more:
                    pipe.hset(_more(key), mapping={_member(e.offset): _encoded(e) for e in more})
                await pipe.execute()

    async def due(self, key: IndexKey, now_ms: int, limit: int) -> list[Entry]:
        with _errors():
            found = await self._redis.zrangebyscore(
                _due(key), 0, now_ms, start=0, num=limit, withscores=True
            )
            members = [member[: -len(MORE)] for member, _ in found if member.endswith(MORE)]
            more = await self._redis.hmget(_more(key), members) if members else []
        details = dict(zip(members, more, strict=True))
        if None in details.values():
            await self._lost(key)
        return [
            _decoded(int(score), details[member[: -len(MORE)]])
            if member.endswith(MORE)
            else Entry(int(score), int(member))
            for member, score in found
        ]

    async def next_due_ms(self, key: IndexKey) -> int | None:
        with _errors():
            found = await self._redis.zrangebyscore(
                _due(key), 0, "+inf", start=0, num=1, withscores=True
            )
        return int(found[0][1]) if found else None

    async def remove(self, key: IndexKey, offsets: Iterable[int]) -> None:
        with _errors():
            async with self._redis.pipeline(transaction=True) as pipe:
                _remove(pipe, key, list(offsets))
                await pipe.execute()

    async def waits(self, key: IndexKey, offset: int) -> bool:
        with _errors():
            member = _member(offset)
            found = await self._redis.zmscore(_due(key), [member, member + MORE])
        return any(each is not None for each in found)

    async def pages(self, key: IndexKey) -> AsyncIterator[Sequence[int]]:
        first, page = 0, [b""]
        while page:
            with _errors():
                page = await self._redis.zrange(_due(key), first, first + PAGE - 1)
            first += PAGE
            yield [int(each.removesuffix(MORE)) for each in page if each != UNTIL]

    async def schedules(self, key: IndexKey) -> list[Entry]:
        found: dict[int, Entry] = {}  # a scan may return an entry twice
        with _errors():
            async for _, value in self._redis.hscan_iter(_more(key), count=PAGE):
                entry = _decoded(0, value)
                found[entry.offset] = entry
            chosen = [e for e in found.values() if e.kind in (DueKind.SCHEDULE, DueKind.SPENT)]
            if not chosen:
                return []
            members = [_member(each.offset) + MORE for each in chosen]
            scores = await self._redis.zmscore(_due(key), members)
        return [
            each._replace(due_ms=int(score))
            for each, score in zip(chosen, scores, strict=True)
            if score is not None
        ]

    async def close(self) -> None:
        await self._redis.aclose()

    async def _lost(self, key: IndexKey) -> None:
        """Redis dropped the hash, for example to save memory: the rest is useless."""
        with _errors():
            await self._redis.delete(_due(key), _more(key))
        raise StoreChanged("the Redis store lost entries: set maxmemory-policy to noeviction")


def _tag(key: IndexKey) -> str:
    return f"penstock-delay:{{{uuid_text(key.topic_id)}/{key.partition}}}"


def _due(key: IndexKey) -> str:
    return f"{_tag(key)}:due"


def _more(key: IndexKey) -> str:
    return f"{_tag(key)}:more"


def _member(offset: int) -> bytes:
    """Padded, because Redis sorts members of equal score by their bytes."""
    return b"%019d" % offset


def _until(score: float | None) -> Offset | None:
    return None if score is None else Offset(-1 - int(score))


def _is_plain(entry: Entry) -> bool:
    return entry.kind is DueKind.RECORD


def _encoded(entry: Entry) -> bytes:
    return msgspec.msgpack.encode((entry.offset, int(entry.kind), entry.key, entry.origin))


def _decoded(due_ms: int, value: bytes) -> Entry:
    offset, kind, key, origin = msgspec.msgpack.decode(value, type=tuple[int, int, bytes, int])
    return Entry(due_ms, offset, DueKind(kind), key, origin)


def _remove(pipe: Any, key: IndexKey, offsets: Sequence[int]) -> None:
    for first in range(0, len(offsets), PAGE):
        members = [_member(each) for each in offsets[first : first + PAGE]]
        pipe.zrem(_due(key), *members, *(each + MORE for each in members))
        pipe.hdel(_more(key), *members)


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except WatchError:
        raise StoreChanged("another program writes the Redis store") from None
    except (RedisError, OSError) as error:
        raise DueStoreUnavailable(f"the Redis store failed: {error}") from None
