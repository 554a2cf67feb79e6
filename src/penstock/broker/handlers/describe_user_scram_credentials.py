"""DescribeUserScramCredentials (key 50, v0): the users that can log in by SCRAM (KIP-554).

Shows mechanisms and iterations only, nothing that helps to log in. Without names: every user that
has a credential.
Refused: users without one, users named twice.
"""

from collections import Counter
from collections.abc import Coroutine, Generator, Mapping
from typing import Any

from penstock.broker.context import Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN, in_turns
from penstock.errors import ErrorCode
from penstock.security.scram import ScramMechanism, parse_stored
from penstock.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, ctx: Context
) -> (
    DescribeUserScramCredentialsResponse | Coroutine[Any, Any, DescribeUserScramCredentialsResponse]
):
    return in_turns(answered(request, ctx))


def answered(
    request: DescribeUserScramCredentialsRequest, ctx: Context
) -> Generator[None, None, DescribeUserScramCredentialsResponse]:
    configs = ctx.services.cluster.image.client_configs
    known = {
        entity.user: found
        for entity, given in configs.items()
        if entity.user and entity.client_id is None and (found := credentials(given))
    }
    named = Counter(each.name for each in request.users or ())
    results: list[DescribeUserScramCredentialsResult] = []
    for name in sorted(named or known):
        results.append(described(name, known.get(name, []), twice=named[name] > 1))
        if len(results) % PARTITIONS_A_TURN == 0:
            yield
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def credentials(given: Mapping[str, str]) -> list[CredentialInfo]:
    parsed = (
        (each, parse_stored(each, given[each.mechanism]))
        for each in ScramMechanism
        if each.mechanism in given
    )
    return [
        CredentialInfo(mechanism=each, iterations=found.iterations)
        for each, found in parsed
        if found is not None
    ]


def described(
    name: str, infos: list[CredentialInfo], *, twice: bool
) -> DescribeUserScramCredentialsResult:
    code, text = ErrorCode.NONE, None
    if twice:
        code = ErrorCode.DUPLICATE_RESOURCE
        text = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        )
        infos = []
    elif not infos:
        code = ErrorCode.RESOURCE_NOT_FOUND
        text = f"Attempt to describe a user credential that does not exist: {name}"
    return DescribeUserScramCredentialsResult(
        user=name, error_code=code, error_message=text, credential_infos=infos
    )
