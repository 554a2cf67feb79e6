"""Filters settings from the metadata store. Pure.

Kafka's tools and other versions write there too, and may allow what this version does not. An
unusable setting is ignored, so that it does not stop anything else.
"""

from collections.abc import Mapping

from penstock.config.setting import Setting, parse
from penstock.errors import ConfigError


def unusable(texts: Mapping[str, str], known: Mapping[str, Setting]) -> dict[str, ConfigError]:
    """The settings whose texts are not allowed, and why; undeclared names are not checked."""
    found = {}
    for name, text in texts.items():
        if name in known:
            try:
                parse(known[name], text)
            except ConfigError as error:
                found[name] = error
    return found


def without_effect(texts: Mapping[str, str], known: Mapping[str, Setting]) -> dict[str, str]:
    """The settings that were changed from the default but have no effect, and why."""
    return {
        name: known[name].doc
        for name, text in usable(texts, known).items()
        if name in known
        and known[name].without_effect
        and parse(known[name], text) != known[name].default
    }


def usable(texts: Mapping[str, str], known: Mapping[str, Setting]) -> Mapping[str, str]:
    """The settings without the unusable ones."""
    refused = unusable(texts, known)
    return {name: text for name, text in texts.items() if name not in refused} if refused else texts
