"""The entry point of `penstock`. During imports too, Ctrl-C ends it without a traceback."""

from penstock.windows import refuse_command


def run() -> None:
    refuse_command()
    try:
        from penstock.cli.main import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
