"""The headers of dead letters."""

from penstock.record.dead_letter import (
    DeadLetter,
    Header,
    dead_letter_headers,
    own_headers,
    read_dead_letter,
    share_letter_headers,
)

LETTER = DeadLetter(
    error="no such customer: Ö",
    source="sdk",
    attempt=4,
    topic="orders",
    partition=2,
    offset=99,
    group="billing",
)


def test_written_headers_are_read_back() -> None:
    assert read_dead_letter(dead_letter_headers(LETTER, [("trace", b"1")])) == LETTER


def test_the_records_headers_stay_and_older_dead_letter_headers_are_replaced() -> None:
    headers = dead_letter_headers(
        DeadLetter(error="new", source="retry"),
        [("trace", b"1"), ("penstock-error", b"old"), ("penstock-origin-offset", b"7")],
    )
    assert headers == [("trace", b"1"), ("penstock-error", b"new"), ("penstock-source", b"retry")]


def test_the_former_header_names_of_pipelines_are_read() -> None:
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


def test_other_records_are_not_dead_letters() -> None:
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


SHARE: list[Header] = [
    ("__dlq.errors.topic", b"orders"),
    ("__dlq.errors.partition", b"2"),
    ("__dlq.errors.offset", b"41"),
    ("__dlq.errors.group", b"billing"),
    ("__dlq.errors.delivery.count", b"5"),
    ("__dlq.errors.message", b"Offset rejected by client."),
]


def test_dead_letters_of_share_groups_are_read() -> None:
    letter = DeadLetter(
        error="Offset rejected by client.",
        source="share",
        attempt=5,
        topic="orders",
        partition=2,
        offset=41,
        group="billing",
    )
    assert read_dead_letter(SHARE) == letter
    without_reason = read_dead_letter(SHARE[:-1])
    assert without_reason is not None
    assert (without_reason.error, without_reason.topic) == ("", "orders")


def test_share_groups_write_both_sets_of_headers_as_text() -> None:
    older: list[Header] = [("trace", b"1"), ("penstock-attempt", b"9"), SHARE[0]]
    headers = share_letter_headers(DeadLetter(error="Ö", source="share", attempt=5), older)
    assert headers[0] == ("trace", b"1")
    assert sorted(headers[1:]) == [
        ("__dlq.errors.delivery.count", b"5"),
        ("__dlq.errors.message", "Ö".encode()),
        ("penstock-attempt", b"5"),
        ("penstock-error", "Ö".encode()),
        ("penstock-source", b"share"),
    ]
    assert own_headers(headers) == [("trace", b"1")]


def test_our_header_names_win_over_those_of_share_groups() -> None:
    letter = read_dead_letter([*SHARE, ("penstock-error", b"bad"), ("penstock-source", b"sdk")])
    assert letter == DeadLetter(error="bad", source="sdk")


def test_a_record_gets_its_own_headers_back() -> None:
    former: list[Header] = [("penstock.reason", b"x"), ("penstock.offset", b"1")]
    ours = dead_letter_headers(LETTER, [("trace", b"1")])
    assert own_headers([*ours, *SHARE, *former]) == [("trace", b"1")]
