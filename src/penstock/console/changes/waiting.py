"""Changes of delayed records and dead letters: cancel, redrive and purge, one or many."""

from math import inf
from urllib.parse import quote

from msgspec import Struct, field

from penstock.clock import SystemClock
from penstock.console.change import Change, Doing, Done
from penstock.console.changes.topics import check_confirmed
from penstock.console.jobs import Job
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.retry.cancel import cancel as cancel_records
from penstock.retry.purge import purge as purge_letters
from penstock.retry.redrive import Redriven, RedriveOptions
from penstock.retry.redrive import redrive as redrive_letters
from penstock.retry.routes import find_routes
from penstock.retry.selection import Selection

WAIT_S = 10.0


class WaitingCancel(Struct, frozen=True, kw_only=True):
    """Records to cancel, as PARTITION:OFFSET."""

    topic: str
    positions: list[str]


async def cancel(doing: Doing, wanted: WaitingCancel) -> Done:
    route = (await find_routes(doing.client)).get(wanted.topic)
    if route is None:
        raise ConfigError(f"{wanted.topic} is not a delay or retry topic")
    if not wanted.positions:
        raise ConfigError("positions: say which records, as PARTITION:OFFSET")
    selection = Selection(positions=positions_of(wanted.positions))
    now_ms = SystemClock().now_ms()
    found = await cancel_records(doing.client, route, selection, now_ms, WAIT_S)
    if not found:
        raise ConfigError(f"no such record waits in {wanted.topic}")
    counts: dict[str, int] = {}
    for _, outcome in found:
        counts[outcome.value] = counts.get(outcome.value, 0) + 1
    return Done(", ".join(f"{number} {what}" for what, number in counts.items()))


class LettersRedrive(Struct, frozen=True, kw_only=True):
    """All dead letters, or those at `positions` (PARTITION:OFFSET), or those whose
    error contains `error`.
    """

    topic: str
    positions: list[str] = field(default_factory=list)
    error: str | None = None
    to: str | None = None
    rate: float | None = None
    dry_run: bool = False


async def redrive(doing: Doing, wanted: LettersRedrive) -> Done:
    client = doing.client
    selection = Selection(positions=positions_of(wanted.positions), error=wanted.error)
    options = RedriveOptions(
        to=wanted.to,
        routes=await find_routes(client),
        rate=wanted.rate,
        dry_run=wanted.dry_run,
    )
    if wanted.rate is not None and not 0 < wanted.rate < inf:
        raise ConfigError("rate must be a number above 0")
    if wanted.dry_run:
        found = await redrive_letters(client, wanted.topic, selection, options)
        return Done(f"would go: {summary(found)}")

    async def work(job: Job) -> str:
        return summary(await redrive_letters(client, wanted.topic, selection, options, job.at))

    await client.retrying(lambda: client.topic(wanted.topic))  # report a wrong name at once
    doing.start(f"redrive {wanted.topic}", work)
    return Done(f"redriving {wanted.topic}", "/jobs")


def summary(found: Redriven) -> str:
    went = [f"{number} to {topic}" for topic, number in sorted(found.counts.items())]
    stay = [f"{number} stay: {reason}" for reason, number in found.refused.most_common()]
    return "; ".join(went + stay) or "no letters"


class LettersPurge(Struct, frozen=True, kw_only=True):
    """`confirm` repeats the name of the topic."""

    topic: str
    confirm: str
    positions: list[str] = field(default_factory=list)


async def purge(doing: Doing, wanted: LettersPurge) -> Done:
    check_confirmed(wanted.topic, wanted.confirm)
    if wanted.topic in await find_routes(doing.client):
        raise ConfigError(f"{wanted.topic} is a delay or retry topic: cancel its records")
    selection = Selection(positions=positions_of(wanted.positions))
    done = await purge_letters(doing.client, wanted.topic, selection)
    page = f"/dead-letters/{quote(wanted.topic, safe='')}"
    return Done(f"purged {counted(done.purged, 'letter')} of {wanted.topic}", page)


def positions_of(texts: list[str]) -> frozenset[tuple[int, int]]:
    try:
        found = {tuple(map(int, each.split(":"))) for each in texts}
        return frozenset((partition, offset) for partition, offset in found)
    except ValueError:
        raise ConfigError("positions must be PARTITION:OFFSET, such as 0:17") from None


WAITING = (
    Change(
        "delay.cancel",
        "POST",
        "/api/v1/delay/{topic}/cancel",
        "Cancel records that wait: either they are cancelled or delivered.",
        WaitingCancel,
        cancel,
    ),
    Change(
        "dlq.redrive",
        "POST",
        "/api/v1/dead-letters/{topic}/redrive",
        "Send dead letters back to their origins, each exactly once.",
        LettersRedrive,
        redrive,
    ),
    Change(
        "dlq.purge",
        "POST",
        "/api/v1/dead-letters/{topic}/purge",
        "Delete dead letters: they are not listed and not redriven any more.",
        LettersPurge,
        purge,
    ),
)
