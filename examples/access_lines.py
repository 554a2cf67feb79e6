"""Lines of a web server that never was, in nginx's combined format with the request's time."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

PAGES = {
    "/": 30,
    "/products": 20,
    "/products/7": 12,
    "/cart": 9,
    "/checkout": 4,
    "/search?q=pump": 8,
}
AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "curl/8.5.0", "Mozilla/5.0 (iPhone)")
STATUSES = {200: 90, 304: 5, 404: 3, 500: 1, 503: 1}
START = datetime(2026, 1, 1, tzinfo=UTC)


def lines(
    seed: int, per_minute: int, start: datetime = START, *, broken_every: int = 0
) -> Iterator[tuple[datetime, str]]:
    """Endless lines with their times, in order; every so many a line that is none."""
    dice = random.Random(seed)
    at, number = start, 0
    while True:
        number += 1
        at += timedelta(seconds=60 / per_minute)
        if broken_every and number % broken_every == 0:
            yield at, f"upstream timed out while reading response header, request {number}"
        else:
            yield at, line(dice, at)


def line(dice: random.Random, at: datetime) -> str:
    (page,) = dice.choices(list(PAGES), list(PAGES.values()))
    (status,) = dice.choices(list(STATUSES), list(STATUSES.values()))
    seconds = dice.lognormvariate(-3, 0.8) * (8 if status >= 500 else 1)
    client = f"10.0.{dice.randrange(4)}.{dice.randrange(1, 250)}"
    return (
        f'{client} - - [{at:%d/%b/%Y:%H:%M:%S %z}] "GET {page} HTTP/1.1" {status} '
        f'{dice.randrange(200, 40_000)} "-" "{dice.choice(AGENTS)}" {seconds:.3f}'
    )
