"""Transactions of clusters whose `transaction.version` is below 2 (KIP-890)."""

from typing import Final

from penstock.spark.client.connection import BlockingConnection

_EXPLICIT: Final = {0: 11, 26: 4, 28: 4}
"""The newest versions of Produce, EndTxn and TxnOffsetCommit that add nothing by themselves."""


def explicit(connection: BlockingConnection) -> None:
    """Speak so that nothing is added to a transaction but by request."""
    for api, newest in _EXPLICIT.items():
        if connection.versions.get(api, 0) > newest:
            connection.versions[api] = newest
