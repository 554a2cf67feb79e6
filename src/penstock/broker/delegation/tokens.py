"""The delegation tokens of the cluster in the store: reads, follows, alters and expires them."""

import asyncio
import hmac
import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor
from random import Random
from typing import Final

from penstock.broker.delegation.token_nodes import (
    CHANGE_PREFIX,
    CHANGES,
    TOKENS,
    node_data,
    path_of,
    token_in,
)
from penstock.clock import Clock
from penstock.config.delegation import DelegationConfig
from penstock.errors import ErrorCode
from penstock.metadata import paths
from penstock.metadata.errors import NodeExists, NoNode, StoreError
from penstock.metadata.following import follow
from penstock.metadata.store import Create, Delete, MetadataStore, Operation, Set
from penstock.security.delegation_token import (
    DelegationToken,
    TokenLimits,
    TokenRefused,
    expired,
    issued,
    renewed,
    token_hmac,
    token_password,
)
from penstock.security.principal import USER, Principal
from penstock.security.scram import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential,
    salted,
)
from penstock.types import Uuid, random_uuid, uuid_text

logger = logging.getLogger(__name__)

NOTIFICATION_LIFE_MS: Final = 15 * 60 * 1000
_SALT_BYTES: Final = 20

Credentials = Mapping[ScramMechanism, ScramCredential]


class DelegationTokens:
    """Holds the current tokens and the credentials derived from them. Belongs to the event loop.

    Every broker writes to the store itself, as in Kafka 3.9, and notifies the others by a node
    under `/delegation_token/token_changes`. Each credential takes milliseconds: `worker` derives it
    before the token is used here.
    """

    def __init__(
        self,
        store: MetadataStore,
        config: DelegationConfig,
        clock: Clock,
        chance: Random,
        worker: Executor,
    ) -> None:
        self._store, self._config, self._clock = store, config, clock
        self._chance, self._worker = chance, worker
        self._secret = config.secret
        self._limits = TokenLimits(
            config.delegation_token_max_lifetime_ms, config.delegation_token_expiry_time_ms
        )
        self._tokens: dict[str, DelegationToken] = {}
        self._credentials: dict[str, Credentials] = {}
        self._begun = self._taken = 0

    @property
    def is_on(self) -> bool:
        return self._secret is not None

    def all(self) -> Collection[DelegationToken]:
        return self._tokens.values()

    def hmac(self, token: DelegationToken) -> bytes:
        return token_hmac(self._key(), token.id)

    def login(
        self, mechanism: ScramMechanism, token_id: str
    ) -> tuple[ScramCredential, DelegationToken] | None:
        """The credential and token for a login; None if there is no valid token."""
        token = self._tokens.get(token_id)
        if token is None or token.has_ended(self._clock.now_ms()) or token.owner.kind != USER:
            return None
        return self._credentials[token_id][mechanism], token

    async def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Collection[Principal],
        max_lifetime_ms: int,
    ) -> DelegationToken:
        self._key()
        token_id = uuid_text(Uuid(random_uuid(self._chance).bytes))
        made = issued(
            token_id,
            owner,
            requester,
            renewers,
            max_lifetime_ms,
            self._limits,
            self._clock.now_ms(),
        )
        await self._write(Create(path_of(token_id), node_data(made)), token_id)
        return made

    async def renew(self, presented: bytes, by: Principal, period_ms: int) -> int:
        """Renew the token; returns its new expiry."""
        token = self._by_hmac(presented)
        new = renewed(token, by, period_ms, self._limits, self._clock.now_ms())
        await self._write(Set(path_of(token.id), node_data(new)), token.id)
        return new.expires_ms

    async def expire(self, presented: bytes, by: Principal, period_ms: int) -> int:
        """Change the token's expiry, perhaps to now; returns it."""
        token, now_ms = self._by_hmac(presented), self._clock.now_ms()
        new = expired(token, by, period_ms, now_ms)
        if new is None:
            await self._write(Delete(path_of(token.id)), token.id)
            return now_ms
        await self._write(Set(path_of(token.id), node_data(new)), token.id)
        return new.expires_ms

    def _key(self) -> str:
        if self._secret is None:
            raise TokenRefused(
                ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "there is no delegation.token.secret.key"
            )
        return self._secret

    def _by_hmac(self, presented: bytes) -> DelegationToken:
        key, found = self._key(), None
        # Compares with all tokens, so that the time taken reveals nothing.
        for token in self._tokens.values():
            if hmac.compare_digest(token_hmac(key, token.id), presented):
                found = token
        if found is None:
            raise TokenRefused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no such token")
        return found

    async def _write(self, operation: Operation, token_id: str) -> None:
        notice = Create(CHANGE_PREFIX, token_id.encode(), sequential=True)
        try:
            await self._store.multi([operation, notice])
        except NoNode:
            raise TokenRefused(
                ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "the token has just been removed"
            ) from None
        await self._read()

    async def open(self) -> None:
        """Read the tokens; logins by token fail before that."""
        if self.is_on:
            for path in (*paths.with_parents(TOKENS), CHANGES):
                try:
                    await self._store.create(path)
                except NodeExists:
                    continue
            await self._read()

    async def follow(self) -> None:
        """Read the tokens again after each change, until cancelled."""
        await follow(self._store, self._read, "delegation tokens", children=[CHANGES, TOKENS])

    async def _read(self) -> None:
        """Read all tokens. An earlier read that ends later must not replace the result of a later
        one.
        """
        self._begun += 1
        number = self._begun
        listed = [path_of(name) for name in await self._store.children(TOKENS)]
        nodes = (await self._store.get_many(listed)).values()
        found = {token.id: token for token in map(token_in, nodes) if token is not None}
        loop = asyncio.get_running_loop()
        made: dict[str, Credentials] = {}
        for token_id in found:
            known = self._credentials.get(token_id)
            if known is None:
                known = await loop.run_in_executor(self._worker, self._make_credentials, token_id)
            made[token_id] = known
        if number > self._taken:
            self._taken, self._tokens, self._credentials = number, found, made

    def _make_credentials(self, token_id: str) -> Credentials:
        password = token_password(self._key(), token_id)
        made = {}
        for mechanism in ScramMechanism:
            salt = self._chance.randbytes(_SALT_BYTES)
            derived = salted(mechanism, password, salt, MIN_ITERATIONS)
            made[mechanism] = credential(mechanism, derived, salt, MIN_ITERATIONS)
        return made

    async def sweep(self, is_controller: Callable[[], bool]) -> None:
        """On the controller: remove expired tokens and old notifications, until cancelled."""
        while True:
            await asyncio.sleep(self._config.delegation_token_expiry_check_interval_ms / 1000)
            if is_controller():
                try:
                    await self.remove_expired()
                except StoreError as error:
                    logger.warning("cannot remove expired delegation tokens: %s", error)

    async def remove_expired(self) -> None:
        now_ms = self._clock.now_ms()
        for token in [each for each in self._tokens.values() if each.has_ended(now_ms)]:
            try:
                await self._write(Delete(path_of(token.id)), token.id)
            except TokenRefused:
                continue  # another broker was faster
            logger.info("removed the expired delegation token %s of %s", token.id, token.owner)
        notices = [f"{CHANGES}/{name}" for name in await self._store.children(CHANGES)]
        nodes = await self._store.get_many(notices)
        old_ms = now_ms - NOTIFICATION_LIFE_MS
        await self._store.multi_many(
            [Delete(path)] for path, node in nodes.items() if node.created_ms < old_ms
        )
