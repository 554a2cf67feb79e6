"""Copies records exactly once, and may kill itself with a transaction open.

python dying.py BOOTSTRAP FOLDER die|live
"""

import os
import signal
import sys
from pathlib import Path

from penstock.sdk.app import App, Guarantee
from penstock.sdk.interceptor import ProducerInterceptor
from penstock.sdk.record import Outgoing, Record

TIME_OUT_S = 60
"""The timeout of a transaction that is left open."""


class Killer(ProducerInterceptor):
    """Kills the process once the record is written but its transaction is not committed."""

    def on_acknowledgement(self, *_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def main(bootstrap: str, folder: str, how: str) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "session.timeout.ms": 1000,
        "heartbeat.interval.ms": 200,
    }
    chain = [Killer()] if how == "die" else []
    app = App(config, group="copiers", state_dir=Path(folder), interceptors=chain)

    @app.on("from", guarantee=Guarantee.EXACTLY_ONCE)
    def copy(record: Record[bytes, bytes]) -> Outgoing[bytes, bytes]:
        return Outgoing("to", record.value)

    app.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
