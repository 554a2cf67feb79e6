"""How a run ends that was neither finished nor stopped."""


class PipelineFailed(Exception):
    """Spark, the data or a sink ended the run; the text says what and where."""


def first_lines(text: str) -> str:
    """What went wrong, without the JVM's stack."""
    kept = []
    for line in text.splitlines():
        if line.lstrip().startswith(("at ", "JVM stacktrace")):
            break
        if line.strip():
            kept.append(line.rstrip())
    return "\n".join(kept[:12])
