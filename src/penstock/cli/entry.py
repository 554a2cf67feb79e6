"""Where the command `penstock` begins. Ctrl-C ends it without a traceback while it is imported."""


def run() -> None:
    try:
        from penstock.cli.main import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
