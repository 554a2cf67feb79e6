"""`kafka-delegation-tokens.sh`: creates, renews, expires and describes delegation tokens."""

import binascii
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import CLUSTER, Option, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.principals import principals
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.delegation_tokens import IssuedToken

ACTIONS = ("create", "renew", "expire", "describe")
ROW = "{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
PRINCIPALS = ("owner-principal", "renewer-principal")
OPTIONS: Sequence[Option] = (
    *CLUSTER,
    flag("create", "Create a token."),
    flag("renew", "Give a token a later end."),
    flag("expire", "End a token."),
    flag("describe", "Describe tokens."),
    text("owner-principal", "TYPE:NAME", "Owner of tokens; repeatable.", repeats=True),
    text("renewer-principal", "TYPE:NAME", "Who else may renew it; repeatable.", repeats=True),
    number("max-life-time-period", "MS", "Its end beyond all renewals; -1: the brokers' own."),
    number("renew-time-period", "MS", "From now on; -1: the brokers' own."),
    number("expiry-time-period", "MS", "From now on; -1: at once."),
    text("hmac", "HMAC", "The token's HMAC, as it was printed when it was created."),
)


def tokens(args: Arguments) -> int:
    if not args.has("bootstrap-server", "zookeeper"):
        args.require("bootstrap-server")
    args.require("command-config")
    actions = args.given(ACTIONS)
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    match actions[0]:
        case "create":
            args.require("max-life-time-period")
            args.forbid("create", ("hmac", "renew-time-period", "expiry-time-period"))
            work = _create
        case "renew":
            args.require("hmac", "renew-time-period")
            args.forbid("renew", (*PRINCIPALS, "max-life-time-period", "expiry-time-period"))
            work = _renew
        case "expire":
            args.require("hmac", "expiry-time-period")
            args.forbid("expire", (*PRINCIPALS, "max-life-time-period", "renew-time-period"))
            work = _expire
        case _:
            periods = ("renew-time-period", "expiry-time-period", "max-life-time-period")
            args.forbid("describe", ("renewer-principal", "hmac", *periods))
            work = _describe
    run(args, partial(work, args))
    return 0


async def _create(args: Arguments, client: "Client") -> None:
    from penstock.client.delegation_tokens import create_token

    renewers, life_ms = principals(args, "renewer-principal"), args.number("max-life-time-period")
    print(
        f"Calling create token operation with renewers :{_listed(renewers)} , "
        f"max-life-time-period :{life_ms}"
    )
    owners = principals(args, "owner-principal")
    made = await create_token(client, owners[0] if owners else None, renewers, life_ms)
    print(f"Created delegation token with tokenId : {made.id}\n")
    _print_tokens([made])


async def _renew(args: Arguments, client: "Client") -> None:
    from penstock.client.delegation_tokens import renew_token

    period_ms = args.number("renew-time-period")
    print(
        f"Calling renew token operation with hmac :{args.text('hmac')} , "
        f"renew-time-period :{period_ms}"
    )
    end_ms = await renew_token(client, _hmac(args), period_ms)
    print(f"Completed renew operation. New expiry date : {_date(end_ms)}")


async def _expire(args: Arguments, client: "Client") -> None:
    from penstock.client.delegation_tokens import expire_token

    period_ms = args.number("expiry-time-period")
    print(
        f"Calling expire token operation with hmac :{args.text('hmac')} , "
        f"expire-time-period :{period_ms}"
    )
    end_ms = await expire_token(client, _hmac(args), period_ms)
    print(f"Completed expire operation. New expiry date : {_date(end_ms)}")


async def _describe(args: Arguments, client: "Client") -> None:
    from penstock.client.delegation_tokens import list_tokens

    owners = principals(args, "owner-principal")
    whose = f"owners: {_listed(owners)}" if owners else "current user."
    print(f"Calling describe token operation for {whose}")
    # Without an owner, Kafka's tool requests the tokens of an empty list of owners, and so shows
    # none.
    found = [each for each in await list_tokens(client) if not owners or each.owner in owners]
    print(f"Total number of tokens : {len(found)}")
    _print_tokens(found)


def _print_tokens(found: "Iterable[IssuedToken]") -> None:
    header = "TOKENID HMAC OWNER REQUESTER RENEWERS ISSUEDATE EXPIRYDATE MAXDATE"
    print(ROW.format(*header.split()))
    for each in found:
        dates = map(_date, (each.issued_ms, each.expires_ms, each.max_ms))
        people = (each.owner, each.requester, _listed(each.renewers))
        print("\n" + ROW.format(each.id, each.password, *people, *dates))


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


def _date(time_ms: int) -> str:
    """The time in this machine's time zone, as Kafka's tool shows it."""
    return datetime.fromtimestamp(time_ms / 1000).astimezone().strftime("%Y-%m-%dT%H:%M")


def _hmac(args: Arguments) -> bytes:
    try:
        return binascii.a2b_base64(args.text("hmac"), strict_mode=True)
    except ValueError:
        raise ToolError("--hmac: is not base64; it must be as it was printed") from None


def failed(error: Exception, _words: Sequence[str]) -> str:
    from penstock.client.errors import BrokerRefused
    from penstock.kafka_tools.messages import exception_name, refusal_text

    reason = refusal_text(error)
    return f"{exception_name(error)}: {reason}" if isinstance(error, BrokerRefused) else reason


TOOL = Tool(
    Table(
        "kafka-delegation-tokens",
        "This tool helps to create, renew, expire, or describe delegation tokens.",
        OPTIONS,
    ),
    tokens,
    failed,
)
