"""Error messages for rejected values in the wording of Kafka's brokers, which scripts may match.

At start, errors in a broker's own file are longer: they name the line and the allowed values.
"""

from penstock.config.setting import Setting, SettingError
from penstock.config.value import PARSERS, ConfigType
from penstock.errors import ConfigError

NUMBERS = {ConfigType.INT: 32, ConfigType.SHORT: 16, ConfigType.LONG: 64}


def kafka_message(error: ConfigError) -> str:
    """The message of an error in a response to a client."""
    if not isinstance(error, SettingError):
        return str(error)
    setting = error.setting
    text = "[hidden]" if setting.sensitive else error.text
    if setting.form is not None or setting.only:
        return str(error)
    return f"Invalid value {text} for configuration {setting.name}: {_why(setting, error.text)}"


def _why(setting: Setting, text: str) -> str:
    kind = setting.kind
    if kind is ConfigType.BOOLEAN:
        return "Expected value to be either true or false"
    if setting.choices:
        return f"String must be one of: {', '.join(setting.choices)}"
    try:
        number = PARSERS[kind](text.strip())
    except ValueError:
        return f"Not a number of type {kind.name}"
    assert isinstance(number, int | float)
    bits = NUMBERS.get(kind)
    if bits is not None and not -(1 << bits - 1) <= number < 1 << bits - 1:
        return f"Not a number of type {kind.name}"
    if setting.also is not None:
        return f"Value must be between {setting.low} and {setting.high} or equal to {setting.also}"
    if setting.low is not None and number < setting.low:
        return f"Value must be at least {setting.low}"
    return f"Value must be no more than {setting.high}"
