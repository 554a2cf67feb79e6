"""Plan 2: one thread that fetches, and as many workers as the work needs, in order per key.

A record that fails is tried again, then becomes a dead letter; the others go on.

    python examples/applications/workers.py 127.0.0.1:9092 orders
"""

import sys
from collections.abc import Callable

from penstock.sdk import App, Backoff, Order, Record


def application(
    bootstrap: str, topic: str, *, handle: Callable[[Record[bytes, bytes]], object] = print
) -> App:
    app = App({"bootstrap.servers": bootstrap}, group="plan-2")
    retry = Backoff("100ms,1s", in_place=True)
    app.on(topic, workers=20, order=Order.KEY, retry=retry, dead_letters=True)(handle)
    return app


if __name__ == "__main__":
    application(*sys.argv[1:]).run()
