"""How a transaction ends if its commit is interrupted or refused, without a broker."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from penstock.sdk import transactions as module
from penstock.sdk.errors import SdkError, TransactionUnanswered
from penstock.sdk.record import Record
from penstock.sdk.transactions import Transactions


def refused(code: int, **kind: bool) -> KafkaException:
    return KafkaException(KafkaError(code, "refused", **kind))


CONFLICT = refused(KafkaError._CONFLICT, retriable=True)
LATE = refused(KafkaError._TIMED_OUT, retriable=True)
FENCED = refused(KafkaError._FENCED, fatal=True)
NOT_NOW = refused(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, retriable=True)
ABORTABLE = refused(KafkaError.INVALID_TXN_STATE, txn_requires_abort=True)


class Client:
    """Like librdkafka's producer: a commit in progress conflicts with an abort."""

    def __init__(self, *commits: BaseException | None) -> None:
        self.commits, self.calls = list(commits), list[str]()
        self.aborts: list[BaseException | None] = []
        self.offsets_refused: KafkaException | None = None
        self.under_way: str | None = None

    def init_transactions(self, _timeout_s: float) -> None: ...

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def send_offsets_to_transaction(self, *_: object) -> None:
        if self.offsets_refused is not None:
            raise self.offsets_refused

    def commit_transaction(self, _timeout_s: float) -> None:
        self._call("commit", self.commits.pop(0))

    def abort_transaction(self, _timeout_s: float) -> None:
        self._call("abort", self.aborts.pop(0) if self.aborts else None)

    def poll(self, _timeout_s: float) -> int:
        self.calls.append("pause")
        return 0

    def _call(self, name: str, error: BaseException | None) -> None:
        self.calls.append(name)
        if self.under_way not in (None, name):
            raise CONFLICT
        if error is FENCED or self.offsets_refused is FENCED:
            raise FENCED
        self.under_way = name if error is not None and error is not ABORTABLE else None
        if error is not None:
            raise error


class Consumer:
    fails_to_close = False
    has_joined = True

    def __init__(self, *_: object, **__: object) -> None:
        self.client: Any = self
        self.left = [Record(Message(topic="t", partition=0, offset=0), b"", b"")]

    def batch(self, *_: object) -> list[Record[bytes, bytes]]:
        records, self.left = self.left, []
        return records

    def take_back(self) -> dict[tuple[str, int], int]:
        return {("t", 0): 1}

    def assignment(self) -> list[object]:
        return []

    def consumer_group_metadata(self) -> None: ...

    def close(self) -> None:
        if self.fails_to_close:
            raise SdkError("the group is unknown")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs one transaction to its end."""

    def run(
        client: Client,
        *,
        is_stopping: bool = False,
        body: Callable[[], None] = lambda: None,
    ) -> None:
        class Producer:
            def __init__(self, *_: object, **__: object) -> None:
                self.client = client

            def close(self) -> None:
                client.calls.append("close")

        monkeypatch.setattr(module, "Consumer", Consumer)
        monkeypatch.setattr(module, "Producer", Producer)
        with Transactions[bytes, bytes](
            {}, ["t"], group="g", is_stopping=lambda: is_stopping
        ) as transactions:
            for _ in transactions.batches(idle_s=0.5):
                body()

    return run


def test_ctrl_c_during_a_commit_is_raised(run: Callable[..., None]) -> None:
    client = Client(LATE, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(client)
    assert client.calls == ["begin", "commit", "commit", "close"], "an abort would conflict"


def test_the_error_of_the_body_is_raised_even_if_its_abort_fails(
    run: Callable[..., None],
) -> None:
    def body() -> None:
        raise KeyboardInterrupt

    client = Client()
    client.aborts = [LATE]
    with pytest.raises(KeyboardInterrupt):
        run(client, body=body)
    assert client.calls == ["begin", "abort", "close"]


@pytest.mark.parametrize("of_offsets", [False, True])
def test_a_fatal_error_is_raised(run: Callable[..., None], *, of_offsets: bool) -> None:
    client = Client(FENCED)
    client.offsets_refused = FENCED if of_offsets else None
    with pytest.raises(SdkError, match="failed for good"):
        run(client)
    assert "abort" not in client.calls


def test_a_commit_refused_by_brokers_is_aborted(run: Callable[..., None]) -> None:
    client = Client(ABORTABLE)
    run(client)
    assert client.calls == ["begin", "commit", "abort", "close"]


@pytest.mark.parametrize("is_stopping", [False, True])
def test_a_retriable_commit_is_retried_after_a_pause(
    run: Callable[..., None], *, is_stopping: bool
) -> None:
    client = Client(NOT_NOW, None)
    run(client, is_stopping=is_stopping)
    assert client.calls == ["begin", "commit", "pause", "commit", "close"]


def test_a_retriable_abort_is_retried(run: Callable[..., None]) -> None:
    client = Client(ABORTABLE)
    client.aborts = [NOT_NOW, None]
    run(client)
    assert client.calls == ["begin", "commit", "abort", "pause", "abort", "close"]


def test_a_stopping_program_does_not_retry_for_ever(run: Callable[..., None]) -> None:
    with pytest.raises(TransactionUnanswered):
        run(Client(*[NOT_NOW] * 1000), is_stopping=True)


def test_a_conflicting_call_is_not_retried(run: Callable[..., None]) -> None:
    client = Client(CONFLICT)
    with pytest.raises(SdkError, match="failed for good"):
        run(client)
    assert client.calls == ["begin", "commit", "abort", "close"]


def test_the_producer_is_closed_even_if_the_consumer_cannot_be(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Consumer, "fails_to_close", True)
    client = Client(None)
    with pytest.raises(SdkError, match="the group is unknown"):
        run(client)
    assert client.calls == ["begin", "commit", "close"]
