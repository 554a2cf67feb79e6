"""The headers of dead letters."""

from penstock.record.dead_letter import DeadLetter, dead_letter_headers, read_dead_letter

LETTER = DeadLetter(
    error="no such customer: Ö",
    source="sdk",
    attempt=4,
    topic="orders",
    partition=2,
    offset=99,
    group="billing",
)


def test_what_is_written_is_read() -> None:
    assert read_dead_letter(dead_letter_headers(LETTER, [("trace", b"1")])) == LETTER


def test_own_headers_stay_and_older_ones_of_ours_are_replaced() -> None:
    headers = dead_letter_headers(
        DeadLetter(error="new", source="retry"),
        [("trace", b"1"), ("penstock-error", b"old"), ("penstock-origin-offset", b"7")],
    )
    assert headers == [("trace", b"1"), ("penstock-error", b"new"), ("penstock-source", b"retry")]


def test_the_former_names_of_pipelines_are_read() -> None:
    headers = [
        ("penstock.reason", b"bad json"),
        ("penstock.pipeline", b"clicks"),
        ("penstock.topic", b"raw"),
        ("penstock.partition", b"1"),
        ("penstock.offset", b"12"),
    ]
    assert read_dead_letter(headers) == DeadLetter(
        error="bad json", source="spark:clicks", topic="raw", partition=1, offset=12
    )


def test_other_records_are_no_dead_letters() -> None:
    assert read_dead_letter([("trace", b"1"), ("penstock-attempt", b"1")]) is None


def test_forged_headers_do_not_raise() -> None:
    letter = read_dead_letter(
        [
            ("penstock-error", b"\xff"),
            ("penstock-origin-offset", b"9" * 5000),
            ("penstock-attempt", b"x"),
        ]
    )
    assert letter == DeadLetter(error="\ufffd", source="")
