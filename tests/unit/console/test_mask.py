"""Masked fields are hidden wherever they are; a value that cannot be parsed is hidden entirely."""

import json

import pytest
from starlette.requests import Request

from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.console.guard import Asker
from penstock.console.mask import Masks, masked, parse_mask
from penstock.console.messages.decoding import Decoder
from penstock.console.messages.routes import sees_all
from penstock.console.waiting import shown_error
from penstock.console.watch import ClusterWatch
from penstock.errors import ConfigError
from penstock.http.users import Role, User
from penstock.record.record import Record
from penstock.testing.clock import ManualClock

DECODE = Decoder(None, ManualClock())


def seen(rules: list[str], value: bytes | None, topic: str = "t") -> bytes | None:
    masks = Masks([parse_mask(each) for each in rules]).of(topic)
    return masks.applied(Record(0, 0, b"k", value, []), DECODE).value


@pytest.mark.parametrize(
    ("value", "path", "wanted"),
    [
        ({"a": 1, "b": 2}, ["a"], {"a": "***", "b": 2}),
        (
            {"a": {"b": [{"c": 1}, {"c": 2, "d": 3}]}},
            ["a", "b", "c"],
            {"a": {"b": [{"c": "***"}, {"c": "***", "d": 3}]}},
        ),
        ([{"a": 1}, 2], ["a"], [{"a": "***"}, 2]),
        ({"x": {"p": 1}, "y": {"p": 2}}, ["*", "p"], {"x": {"p": "***"}, "y": {"p": "***"}}),
        ({"a": {"b": 1}}, ["a"], {"a": "***"}),
        ({"a": 1}, ["a", "b"], {"a": 1}),
        ({"b": 1}, ["a"], {"b": 1}),
    ],
)
def test_paths_reach_into_objects_and_lists(value: object, path: list[str], wanted: object) -> None:
    assert masked(value, path) == wanted


def test_a_value_without_the_field_stays_byte_for_byte() -> None:
    assert seen(["value.a"], b'{ "b": 1 }') == b'{ "b": 1 }'
    hidden = seen(["value.a"], b'{ "a": "secret", "b": 1 }')
    assert hidden is not None
    assert json.loads(hidden) == {"a": "***", "b": 1}


@pytest.mark.parametrize("value", [b"a: secret", b'{"a": "secret"', b"\x00\x00\x01", b'"a"'])
def test_a_value_that_cannot_be_parsed_is_hidden_entirely(value: bytes) -> None:
    assert seen(["value.a"], value) == b"***"


def test_a_duplicate_field_that_decoding_drops_is_hidden() -> None:
    twice = b'{"a": {"b": "secret"}, "a": 1, "c": 2}'
    assert seen(["value.a.b"], twice) == b'{"a":1,"c":2}'
    msgpack = b"\x82\xa1a\x81\xa1b\xa6secret\xa1a\x01"
    assert seen(["value.a.b"], msgpack) == b'{"a":1}'


def test_a_value_too_deep_to_parse_is_hidden_entirely() -> None:
    assert seen(["value.a"], b"[" * 900 + b"]" * 900) == b"***"


def test_null_and_empty_hide_nothing() -> None:
    assert seen(["value.a"], None) is None
    assert seen(["value.a"], b"") == b""


def test_rules_apply_to_topics_and_headers() -> None:
    assert seen(["pay*:value.a"], b'{"a":1}', "orders") == b'{"a":1}'
    assert seen(["pay*:value.a"], b'{"a":1}', "payments") == b'{"a":"***"}'
    assert seen(["value"], b'{"a":1}') == b"***"
    masks = Masks([parse_mask("header.Auth.Token")])
    record = Record(0, 0, b"k", b"v", [("auth.token", b"x"), ("AUTH.TOKEN", None), ("other", b"y")])
    assert masks.applied(record, DECODE).headers == [
        ("auth.token", b"***"),
        ("AUTH.TOKEN", None),
        ("other", b"y"),
    ]


@pytest.mark.parametrize("text", ["", "x", "value.", "value..a", "header", "t:body.a"])
def test_a_wrong_rule_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--mask"):
        parse_mask(text)


def test_a_field_that_json_names_twice_is_hidden_each_time() -> None:
    for twice in (b'{"card": {"no": "4111"}, "card": 0}', b'{"no": "4111", "no": "***"}'):
        assert b"4111" not in (seen(["value.card.no", "value.no"], twice) or b"")
    assert seen(["value.card.no"], b'{"id":  7}') == b'{"id":  7}'


def test_a_json_text_inside_a_string_is_hidden_if_it_may_hold_the_field() -> None:
    found = seen(["value.*.no"], json.dumps({"card": '{"no": "4111"}', "user": "bob"}).encode())
    assert json.loads(found or b"") == {"card": "***", "user": "bob"}


@pytest.mark.parametrize("name", ["penstock-error", "Penstock.Reason", "__dlq.errors.message"])
def test_lists_of_dead_letters_hide_a_masked_error(name: str) -> None:
    masks = Masks([parse_mask(f"*.dlq:header.{name}")])
    watch = ClusterWatch(Client([Address("127.0.0.1", 1)]), ManualClock(), masks=masks)
    assert shown_error(watch, "orders.dlq", "card 4111 is void") == "***"
    assert shown_error(watch, "orders.retry", "card 4111 is void") == "card 4111 is void"
    assert shown_error(watch, "orders.dlq", None) is None


@pytest.mark.parametrize(
    ("role", "is_read_only", "sees"),
    [
        (None, False, False),
        (Role.VIEWER, False, False),
        (Role.OPERATOR, False, True),
        (Role.ADMIN, True, False),
    ],
)
def test_fields_are_hidden_from_viewers(
    role: Role | None, *, is_read_only: bool, sees: bool
) -> None:
    """On a read-only console everybody may do what a viewer may."""

    async def still() -> bool:
        return True

    user = None if role is None else User("a", role)
    request = Request({"type": "http"})
    request.state.asker = Asker(user, "::1", "", "", still, is_read_only)
    assert sees_all(request) is sees
