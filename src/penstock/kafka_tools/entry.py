"""The entry point of all scripts: the script's own name selects the tool."""

import sys

from penstock.windows import refuse_command


def run() -> None:
    refuse_command()
    try:
        if None in (sys.stdin, sys.stdout, sys.stderr):  # closed, as by `>&-`
            from penstock.cli.failure import fill_closed_streams  # late: it imports click

            fill_closed_streams()
        from penstock.kafka_tools.main import main

        code = main(sys.argv[0], sys.argv[1:])
    except KeyboardInterrupt:  # during imports too
        code = 130
    raise SystemExit(code)
