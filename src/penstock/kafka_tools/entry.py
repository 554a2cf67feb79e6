"""The entry point of every script: the script's own name says which tool to run."""

import sys


def run() -> None:
    try:
        from penstock.kafka_tools.main import main

        code = main(sys.argv[0], sys.argv[1:])
    except KeyboardInterrupt:  # during imports too
        code = 130
    raise SystemExit(code)
