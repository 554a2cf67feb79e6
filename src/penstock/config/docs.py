"""Generates `docs/settings.md` from the declarations."""

from collections.abc import Iterable, Iterator

from penstock.config.broker import SECTIONS
from penstock.config.consumer_group import ConsumerGroupConfig
from penstock.config.profile import PROFILES
from penstock.config.setting import Setting, settings
from penstock.config.share_group import ShareGroupConfig
from penstock.config.topic import TopicConfig
from penstock.config.topic_defaults import synonym_settings
from penstock.config.value import INT_MAX, LONG_MAX, ConfigType, render

INTRODUCTION = """\
# Settings

Generated from the declarations in `src/penstock/config` by `scripts/docs.py`: change them there.
Names, types and defaults are Apache Kafka 4.3's, those of ZooKeeper Kafka 3.9's; Penstock's own
start with `penstock.`.

The first of these sources that has a setting wins: `--set name=value`, the environment,
the file (`server.properties`, or TOML or YAML with nested keys), the profile, the default below.
In the environment `KAFKA_LOG_SEGMENT_BYTES` is `log.segment.bytes` and `PENSTOCK_HTTP_LISTEN`
is `penstock.http.listen`; `__` stands for an underscore, `___` for a dash. An unknown
name gives a warning with the nearest known one, and an error in strict mode.

*Change* says whether a running broker accepts a new value: `read-only` needs a restart,
`per-broker` and `cluster-wide` do not.

Settings marked "Accepted, without effect" exist so that Kafka's files and tools work; the broker
logs a warning of a value other than the default, at start and when it is altered. Where only the
default is allowed, any other value would promise a limit or a safety that the broker does not
provide, and stops the start.
"""


def settings_page() -> str:
    return "\n".join([INTRODUCTION, *_topics(), *_groups(), *_brokers(), *_profiles()])


def _topics() -> Iterator[str]:
    yield "## Topic settings\n\nEvery one can be changed while the topic is in use.\n"
    yield from _own_settings(TopicConfig)


def _groups() -> Iterator[str]:
    yield "## Group settings\n"
    yield "Of groups of the consumer protocol: `kafka-configs --entity-type groups`. They hold from"
    yield "a member's next heartbeat on, within the broker's `group.consumer.min.*` and `max.*`.\n"
    yield from _own_settings(ConsumerGroupConfig)
    yield from _own_settings(ShareGroupConfig)


def _own_settings(config: type) -> Iterator[str]:
    yield "| Name | Type | Default | Allowed | Broker setting behind the default | |"
    yield "|---|---|---|---|---|---|"
    for each in settings(config).values():
        behind = ", ".join(f"`{synonym.name}`" for synonym in each.synonyms) or "none"
        yield _row(each, behind)
    yield ""


def _brokers() -> Iterator[str]:
    yield "## Broker settings\n"
    for section in SECTIONS:
        yield from _table(section.__doc__ or section.__name__, settings(section).values())
    yield from _table("Defaults of topic settings.", synonym_settings().values())


def _table(title: str, rows: Iterable[Setting]) -> Iterator[str]:
    yield f"### {title.rstrip('.')}\n"
    yield "| Name | Type | Default | Allowed | Change | |"
    yield "|---|---|---|---|---|---|"
    for each in rows:
        yield _row(each, each.update.value)
    yield ""


def _profiles() -> Iterator[str]:
    yield "## Profiles\n"
    for name, texts in PROFILES.items():
        values = ", ".join(f"`{key}={text}`" for key, text in texts.items())
        yield f"- `{name}`: {values}"
    yield "\n`classic` turns unclean leader election on: a replica that lacks acknowledged records"
    yield "may become leader, and they are lost.\n"


def _row(setting: Setting, column: str) -> str:
    cells = (
        f"`{setting.name}`",
        setting.kind.name.lower(),
        _default(setting),
        _allowed(setting),
        column,
        setting.doc,
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _default(setting: Setting) -> str:
    match setting.default:
        case None:
            return "not set"
        case int() as number if number == LONG_MAX or (
            number == INT_MAX and setting.kind is ConfigType.INT
        ):
            return "no limit"
        case value:
            text = render(value)
            return f"`{text}`" if text else "empty"


def _allowed(setting: Setting) -> str:
    if setting.only:
        return "only the default"
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.form:
        return setting.form.words
    if setting.low is None and setting.high is None:
        return "any"
    upper = "" if setting.high is None else f" to {setting.high}"
    other = "" if setting.also is None else f", or {setting.also}"
    return f"{setting.low}{upper}{other}" if upper else f"≥ {setting.low}{other}"
