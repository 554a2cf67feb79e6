"""AlterUserScramCredentials (key 51, v0): create, replace and delete SCRAM users (KIP-554).

The client sends the salted password; the stored credential cannot be turned back into it. The
alterations of each user succeed or fail together.
Refused: empty names or salts, fewer than 4096 or more than 16384 iterations, a credential altered
twice, deletion of a credential that does not exist.
"""

from collections import Counter
from typing import TypeAlias

from penstock.broker.context import Context
from penstock.broker.handling.turns import KEYS_A_TURN, PARTITIONS_A_TURN
from penstock.controller.configs import AlterOperation, ClientResource, ConfigAlteration
from penstock.errors import ErrorCode, KafkaError
from penstock.loop import with_turns
from penstock.metadata.client_entity import ClientEntity
from penstock.security.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
    credential,
    stored_text,
)
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

Alteration: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion


class UnacceptableCredential(KafkaError):
    """The credential could not be used to log in, or would be too weak."""

    code = ErrorCode.UNACCEPTABLE_CREDENTIAL


class UnknownMechanism(KafkaError):
    """The mechanism is neither SCRAM-SHA-256 nor SCRAM-SHA-512."""

    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class DuplicateCredential(KafkaError):
    """A credential is altered twice in one request."""

    code = ErrorCode.DUPLICATE_RESOURCE


class NoSuchCredential(KafkaError):
    """The credential to delete does not exist."""

    code = ErrorCode.RESOURCE_NOT_FOUND


async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, ctx: Context
) -> AlterUserScramCredentialsResponse:
    by_user: dict[str, list[Alteration]] = {}
    listed: list[Alteration] = [*request.deletions, *request.upsertions]
    async for each in with_turns(listed, KEYS_A_TURN):
        by_user.setdefault(each.name, []).append(each)
    results = []
    async for name, asked in with_turns(by_user.items(), PARTITIONS_A_TURN):
        code, text = ErrorCode.NONE, None
        try:
            await alter(name, asked, ctx)
        except KafkaError as error:
            code, text = error.code, str(error)
        results.append(
            AlterUserScramCredentialsResult(user=name, error_code=code, error_message=text)
        )
    return AlterUserScramCredentialsResponse(results=results)


async def alter(name: str, asked: list[Alteration], ctx: Context) -> None:
    if not name:
        raise UnacceptableCredential("Username must not be empty")
    if max(Counter(each.mechanism for each in asked).values()) > 1:
        raise DuplicateCredential("A user credential cannot be altered twice in the same request")
    controller = ctx.services.control.controller
    entity = ClientEntity(name)
    known = controller.image.client_configs.get(entity, {})
    alterations = []
    for each in asked:
        mechanism = known_mechanism(each.mechanism)
        if isinstance(each, ScramCredentialUpsertion):
            alterations.append(upsertion(mechanism, each))
        elif mechanism.mechanism in known:
            alterations.append(ConfigAlteration(mechanism.mechanism, AlterOperation.DELETE))
        else:
            raise NoSuchCredential("Attempt to delete a user credential that does not exist")
    await controller.alter_config(ClientResource(entity), alterations)


def known_mechanism(number: int) -> ScramMechanism:
    try:
        return ScramMechanism(number)
    except ValueError:
        raise UnknownMechanism("Unknown SCRAM mechanism") from None


def upsertion(mechanism: ScramMechanism, asked: ScramCredentialUpsertion) -> ConfigAlteration:
    if asked.iterations < MIN_ITERATIONS:
        raise UnacceptableCredential("Too few iterations")
    if asked.iterations > MAX_ITERATIONS:
        raise UnacceptableCredential("Too many iterations")
    if not asked.salt or not asked.salted_password:
        raise UnacceptableCredential("The salt and the salted password must not be empty")
    made = credential(mechanism, asked.salted_password, asked.salt, asked.iterations)
    return ConfigAlteration(mechanism.mechanism, AlterOperation.SET, stored_text(made))
