"""The entry point of `penstock`. Ctrl-C ends it without a traceback, even during imports."""

from penstock.windows import refuse_command


def run() -> None:
    refuse_command()
    try:
        from penstock.cli.main import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
