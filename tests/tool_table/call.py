"""One call of an official tool, and its output without what differs from run to run."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    """`{file}` in an argument stands for a file that holds `content`."""

    tool: str
    arguments: str
    stdin: str = ""
    content: str = ""
    only: str = ""
    """Compare just the lines that match: Kafka says more than concerns us."""
    in_any_order: bool = False
    but: tuple[str, ...] = field(default=())
    """Patterns that are taken out before the comparison, beside `VARYING`."""

    def __str__(self) -> str:
        return f"{self.tool} {self.arguments}"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


VARYING: dict[str, str] = {
    r"\b(127\.0\.0\.1|localhost):\d+": "BROKER",
    r"TopicId: \S+": "TopicId: ID",
    r"Cluster ID: \S+": "Cluster ID: ID",
    r"(console-consumer|consumer-\w+-\d+)-[0-9a-f-]{36}": "MEMBER",
    r"console-consumer-\d+": "MEMBER",
    r"(?<![\w-])[A-Za-z0-9_-]{22}(?=\s|$)": "MEMBER",
    # Eligible leader replicas are KRaft's.
    r"\s*Elr:[^\n]*": "",
    r"(min\.insync\.replicas=1,?)": "",
    r"(\"size\"|\"commitTimestamp\"|\"expireTimestamp\"):-?\d+": r"\1:N",
    r"\"logDir\":\"[^\"]*\"": '"logDir":"DIR"',
    r"/\S+/(penstock|pytest)-\S+": "PATH",
    # Why a topic is refused, each says in its own words; the exception says what kind it is.
    r"(Error while executing topic command :).*": r"\1",
}


def compared(call: Call, done: Done) -> tuple[int, list[str], list[str]]:
    """The exit code, the lines on standard output, and the exceptions named anywhere."""
    text = done.out
    for pattern, instead in {**VARYING, **dict.fromkeys(call.but, "")}.items():
        text = re.sub(pattern, instead, text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    # A stack trace is Kafka's own on both sides; what it says is in the exceptions.
    lines = [line for line in lines if line and not line.startswith("at ")]
    lines = [re.sub(r"(\w+Exception).*", r"\1", line) for line in lines]
    if call.only:
        lines = [line for line in lines if re.search(call.only, line)]
    if call.in_any_order:
        lines.sort()
    exceptions = re.findall(r"\b(?:\w+\.)+(\w+Exception)\b", done.out + done.err)
    return done.code, lines, sorted(set(exceptions))
