"""DescribeDelegationToken: work grows with tokens plus named owners, not their product."""

from types import SimpleNamespace
from typing import cast

from penstock.broker.context import Context
from penstock.broker.handlers.describe_delegation_token import describe_delegation_token
from penstock.config.listener import SecurityProtocol
from penstock.security.delegation_token import DelegationToken
from penstock.security.principal import Principal, user
from penstock.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)

ALICE = user("alice")
asked: list[Principal] = []


class WatchedToken(DelegationToken, frozen=True):
    def is_of(self, principal: Principal) -> bool:
        asked.append(principal)
        return super().is_of(principal)


def made(number: int, owner: Principal, *renewers: Principal) -> DelegationToken:
    return WatchedToken(f"id{number}", owner, owner, renewers, 0, 10, 10)


def context(tokens: list[DelegationToken]) -> Context:
    known = SimpleNamespace(is_on=True, all=lambda: tokens, hmac=lambda _: b"hmac")
    listener = SimpleNamespace(protocols=lambda: {"S": SecurityProtocol.SASL_PLAINTEXT})
    services = SimpleNamespace(
        delegation_tokens=known, authorizer=None, config=SimpleNamespace(listener=listener)
    )
    peer = SimpleNamespace(listener="S", principal=ALICE, by_token=False)
    return cast("Context", SimpleNamespace(peer=peer, services=services))


def test_tokens_of_named_owners_are_found_without_checking_each_pair() -> None:
    tokens = [made(0, ALICE), made(1, user("bob")), made(2, user("carol"), user("dave"))]
    names = [f"nobody{number}" for number in range(50)]
    owners = [DescribeDelegationTokenOwner("User", each) for each in ("alice", "dave", *names)]
    asked.clear()
    found = describe_delegation_token(DescribeDelegationTokenRequest(owners), context(tokens))
    assert [each.token_id for each in found.tokens] == ["id0", "id2"]
    assert len(asked) <= len(tokens)


def test_a_null_list_of_owners_asks_for_all_tokens_and_an_empty_one_for_none() -> None:
    tokens = [made(0, ALICE), made(1, user("bob"))]
    every = describe_delegation_token(DescribeDelegationTokenRequest(None), context(tokens))
    assert [each.token_id for each in every.tokens] == ["id0", "id1"]
    none = describe_delegation_token(DescribeDelegationTokenRequest([]), context(tokens))
    assert none.tokens == []
