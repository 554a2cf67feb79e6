"""Routes in a file, for brokers that do not have the topic settings, such as Apache Kafka.

# A section for each delay or retry topic; settings have the names of the topic settings.
[orders-again]
penstock.retry.to = orders
penstock.retry.backoff = 1s,10s,1m
"""

from dataclasses import dataclass, field

from penstock.config.delay_route import DELAY_TO, RETRY_TO, ROUTE_SETTINGS, Route, route_of
from penstock.errors import ConfigError


@dataclass(slots=True)
class _Section:
    topic: str
    line: int
    settings: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


def parse_routes(text: str, file: str) -> dict[str, Route]:
    """The routes by topic. Errors name the file, the line and the setting."""
    sections: dict[str, _Section] = {}
    section: _Section | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            topic = line[1:-1].strip()
            if line[-1] != "]" or not topic:
                raise _error(file, number, f"{line!r} is not a section; write [TOPIC]")
            if topic in sections:
                raise _error(
                    file, number, f"topic {topic} is in line {sections[topic].line} already"
                )
            section = sections[topic] = _Section(topic, number)
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise _error(file, number, f"{line!r} is not a setting; write NAME = VALUE")
        if section is None:
            raise _error(file, number, f"{name} stands before the first [TOPIC]")
        if name not in ROUTE_SETTINGS:
            raise _error(file, number, f"{name} is unknown; there are {', '.join(ROUTE_SETTINGS)}")
        if name in section.settings:
            raise _error(file, number, f"{name} is in line {section.lines[name]} already")
        section.settings[name], section.lines[name] = value, number
    return {topic: _route(each, file) for topic, each in sections.items()}


def _route(section: _Section, file: str) -> Route:
    try:
        route = route_of(section.topic, section.settings)
    except ConfigError as error:
        named = [at for name, at in section.lines.items() if str(error).startswith(name)]
        raise _error(file, max(named, default=section.line), str(error)) from None
    if route is None:
        raise _error(file, section.line, f"topic {section.topic} needs {DELAY_TO} or {RETRY_TO}")
    return route


def _error(file: str, line: int, text: str) -> ConfigError:
    return ConfigError(f"{file}, line {line}: {text}")
