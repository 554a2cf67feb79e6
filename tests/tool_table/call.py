"""One call of an official tool, and its output without the parts that vary."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    """One call; `{file}` in an argument stands for a file that holds `content`."""

    tool: str
    arguments: str
    stdin: str = ""
    content: str = ""
    only: str = ""
    """Compares only the lines that match: Kafka prints more than is relevant."""
    in_any_order: bool = False
    but: tuple[str, ...] = field(default=())
    """Patterns that are removed before the comparison, in addition to `VARYING`."""

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
    # Only KRaft has eligible leader replicas.
    r"\s*Elr:[^\n]*": "",
    r"(min\.insync\.replicas=1,?)": "",
    r"(\"size\"|\"commitTimestamp\"|\"expireTimestamp\"):-?\d+": r"\1:N",
    r"\"logDir\":\"[^\"]*\"": '"logDir":"DIR"',
    r"/\S+/(penstock|pytest)-\S+": "PATH",
    # Each broker words a refusal in its own way; the exception says of what kind it is.
    r"(Error while executing topic command :).*": r"\1",
}


def compared(call: Call, done: Done) -> tuple[int, list[str], list[str]]:
    """The exit code, the lines on standard output, and all exceptions that are named."""
    text = done.out
    for pattern, instead in {**VARYING, **dict.fromkeys(call.but, "")}.items():
        text = re.sub(pattern, instead, text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    # Stack traces are Kafka's own on both sides; their message is in the exceptions.
    lines = [line for line in lines if line and not line.startswith("at ")]
    lines = [re.sub(r"(\w+Exception).*", r"\1", line) for line in lines]
    if call.only:
        lines = [line for line in lines if re.search(call.only, line)]
    if call.in_any_order:
        lines.sort()
    exceptions = re.findall(r"\b(?:\w+\.)+(\w+Exception)\b", done.out + done.err)
    return done.code, lines, sorted(set(exceptions))
