"""Quotas of clients: what is stored, what is refused, what a filter finds."""

from differential.case import Case, Eventually, Step, case
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from penstock.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)

EXACT, DEFAULT, SPECIFIED = range(3)


def entry(parts: dict[str, str | None], *ops: tuple[str, float | None]) -> EntryData:
    return EntryData(
        entity=[EntityData(kind, name) for kind, name in parts.items()],
        ops=[OpData(key, value or 0.0, remove=value is None) for key, value in ops],
    )


def alter(*entries: EntryData, validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)


def described(
    *components: tuple[str, int, str | None], strict: bool = True
) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[ComponentData(*each) for each in components], strict=strict
    )


def reported(count: int) -> Eventually:
    """Kafka's brokers learn of quotas after the controller has answered."""
    anything = described(("user", EXACT, "~u"), strict=False)
    return Eventually(anything, lambda answer: len(answer.entries) == count)


USER: dict[str, str | None] = {"user": "~u"}
BOTH: dict[str, str | None] = {"user": "~u", "client-id": "~c"}
RATE = ("producer_byte_rate", 1024.0)

REFUSED: dict[str, tuple[dict[str, str | None], tuple[tuple[str, float | None], ...]]] = {
    "no entity": ({}, (RATE,)),
    "an unknown type": ({"group": "g"}, (RATE,)),
    "an empty name": ({"user": ""}, (RATE,)),
    "an address and a user": ({"ip": "127.0.0.9", "user": "u"}, (RATE,)),
    "an invalid address": ({"ip": "1.2.3.4.5.6"}, (("connection_creation_rate", 1.0),)),
    "an unknown key": (USER, (("bytes", 1.0),)),
    "a key of addresses": (USER, (("connection_creation_rate", 1.0),)),
    "a key of users for an address": ({"ip": "127.0.0.9"}, (RATE,)),
    "zero": (USER, (("producer_byte_rate", 0.0),)),
    "below zero": (USER, (("request_percentage", -1.5),)),
    "a fraction of a byte": (USER, (("consumer_byte_rate", 1.5),)),
    "too many bytes": (USER, (("consumer_byte_rate", 1e19),)),
    "too many connections": ({"ip": "127.0.0.9"}, (("connection_creation_rate", 3e9),)),
    "one good and one bad key": (USER, (RATE, ("consumer_byte_rate", 0.5))),
}

FILTERS: dict[str, DescribeClientQuotasRequest] = {
    "no type": described(("", EXACT, "u")),
    "an unknown type": described(("group", EXACT, "u")),
    "a type twice": described(("user", EXACT, "~u"), ("user", SPECIFIED, None)),
    "exactly null": described(("user", EXACT, None)),
    "a default with a name": described(("user", DEFAULT, "u")),
    "any with a name": described(("user", SPECIFIED, "u")),
    "an unknown match": described(("user", 7, None)),
    "an address and a user": described(("ip", SPECIFIED, None), ("user", SPECIFIED, None)),
    "nobody": described(("user", EXACT, "~nobody")),
    "a user, strictly": described(("user", EXACT, "~u")),
    "a user": described(("user", EXACT, "~u"), strict=False),
    "both, strictly": described(("user", EXACT, "~u"), ("client-id", EXACT, "~c")),
    "any client of a user": described(("user", EXACT, "~u"), ("client-id", SPECIFIED, None)),
    "the default client of a user": described(("user", EXACT, "~u"), ("client-id", DEFAULT, None)),
}

SET: tuple[Step, ...] = (
    alter(
        entry(USER, RATE, ("request_percentage", 12.5)),
        entry(BOTH, ("consumer_byte_rate", 2048.0)),
        entry({"user": "~u", "client-id": None}, ("controller_mutation_rate", 0.25)),
    ),
    reported(3),
)


def refusal(name: str) -> Case:
    parts, ops = REFUSED[name]
    return case(f"refused, {name}", alter(entry(parts, *ops)))


CASES: list[Case] = [
    case("nothing", alter()),
    case("only looks", alter(entry(USER, RATE), validate_only=True)),
    case(
        "set, altered and removed",
        *SET,
        FILTERS["a user"],
        alter(entry(USER, ("producer_byte_rate", 4096.0), ("request_percentage", None))),
        Eventually(
            FILTERS["a user, strictly"], lambda answer: answer.entries[0].values[0].value == 4096
        ),
        alter(entry(USER, ("producer_byte_rate", None), ("unknown", None))),
        reported(2),
        FILTERS["a user"],
        api=AlterClientQuotasRequest,
    ),
    case("two entities, one refused", alter(entry(USER, RATE), entry({"user": ""}, RATE))),
    *map(refusal, REFUSED),
    *(case(name, *SET, asked) for name, asked in FILTERS.items()),
]
