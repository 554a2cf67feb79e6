"""Declared settings: type, range, secrecy, and texts in and out."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.broker import broker_settings
from penstock.config.setting import (
    Setting,
    SettingError,
    Update,
    allows,
    load,
    parse,
    setting,
    settings,
)
from penstock.config.topic import TopicConfig
from penstock.config.value import INT_MAX, LONG_MAX, ConfigType, Password, Value, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    size_bytes: int = setting("size.bytes", 10, "A size.", low=1, high=99)
    ratio: float = setting("ratio", 0.5, "A share.", low=0, high=1)
    secret: Password | None = setting("secret", None, "A key.", kind=ConfigType.PASSWORD)
    mode: str = setting("mode", "slow", "A mode.", choices=("slow", "fast"), any_case=True)
    rack: str | None = setting("rack", None, "A rack.")


ALL = [*broker_settings().values(), *settings(TopicConfig).values()]


def test_one_line_gives_type_name_and_range() -> None:
    assert list(settings(Sample)) == ["size.bytes", "ratio", "secret", "mode", "rack"]
    size = settings(Sample)["size.bytes"]
    assert (size.kind, size.default, size.update) == (ConfigType.INT, 10, Update.READ_ONLY)
    assert settings(Sample)["rack"].kind is ConfigType.STRING


def test_texts_become_a_config_and_unknown_names_are_ignored() -> None:
    config = load(Sample, {"size.bytes": "20", "mode": "FAST", "other": "x"})
    assert config == Sample(size_bytes=20, mode="fast")
    assert load(Sample, {"ratio": "1"}, config) == Sample(size_bytes=20, mode="fast", ratio=1.0)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("size.bytes", "0", "size.bytes is '0', must be a 32-bit integer from 1 to 99"),
        ("size.bytes", "ten", "size.bytes is 'ten', must be a 32-bit integer from 1 to 99"),
        ("ratio", "nan", "ratio is 'nan', must be a number from 0 to 1"),
        ("mode", "idle", "mode is 'idle', must be one of slow, fast"),
    ],
)
def test_an_error_names_the_setting_the_value_and_what_is_allowed(
    name: str, text: str, message: str
) -> None:
    with pytest.raises(SettingError) as refused:
        load(Sample, {name: text})
    assert str(refused.value) == message
    assert str(refused.value.at("server.properties:3")) == f"server.properties:3: {message}"


def test_a_password_is_never_shown() -> None:
    config = load(Sample, {"secret": "hunter2"})
    assert config.secret is not None
    assert config.secret.value == "hunter2"
    assert "hunter2" not in f"{config!r} {config.secret} {render(config.secret)}"
    assert settings(Sample)["secret"].sensitive


def test_a_rejected_password_is_not_shown() -> None:
    shown = str(SettingError(settings(Sample)["secret"], "hunter2"))
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (-1, "-1"),
        (("a", "b"), "a,b"),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (0.001, "0.001"),
        (0.00001, "1.0E-5"),
        (1e7, "1.0E7"),
        (-123456789.5, "-1.234567895E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
    ],
)
def test_a_value_is_written_as_kafka_writes_it(value: Value, text: str | None) -> None:
    assert render(value) == text


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_every_default_is_one_of_the_values_allowed(each: Setting) -> None:
    assert each.default is None or allows(each, each.default)


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_every_default_survives_a_round_trip(each: Setting) -> None:
    text = render(each.default)
    assert text is None or parse(each, text) == each.default


def numbers(each: Setting) -> st.SearchStrategy[Value]:
    bounds = {ConfigType.SHORT: (1 << 15) - 1, ConfigType.INT: INT_MAX, ConfigType.LONG: LONG_MAX}
    limit = bounds[each.kind]
    low = -limit - 1 if each.low is None else int(each.low)
    return st.integers(low, limit if each.high is None else int(each.high))


def values(each: Setting) -> st.SearchStrategy[Value]:
    if each.only:
        return st.just(each.default)
    match each.kind:
        case ConfigType.BOOLEAN:
            return st.booleans()
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return numbers(each)
        case ConfigType.DOUBLE:
            return st.floats(each.low, each.high, allow_nan=False)
        case ConfigType.LIST if each.choices:
            return st.lists(st.sampled_from(each.choices), unique=True).map(tuple)
        case ConfigType.STRING if each.choices:
            return st.sampled_from(each.choices)
        case _:
            return st.just(each.default)


@given(st.data())
def test_a_rendered_value_is_parsed_back(data: st.DataObject) -> None:
    each = data.draw(st.sampled_from(ALL))
    value = data.draw(values(each))
    text = render(value)
    assert text is None or parse(each, text) == value


@given(st.sampled_from(ALL), st.text())
def test_any_text_is_accepted_within_range_or_rejected_by_name(each: Setting, text: str) -> None:
    try:
        assert allows(each, parse(each, text))
    except SettingError as refused:
        assert each.name in str(refused)  # noqa: PT017 (either outcome is right)
