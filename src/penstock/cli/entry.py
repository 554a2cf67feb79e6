"""The entry point of `penstock`. During imports too, Ctrl-C ends it without a traceback."""


def run() -> None:
    try:
        from penstock.cli.main import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
