"""Runs a tool of `penstock.kafka_tools` in this process: its output and exit code."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from penstock.kafka_tools.main import main


class ToolResult(NamedTuple):
    code: int
    out: str
    err: str


def call_tool(script: str, *words: str, stdin: str = "") -> ToolResult:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    typed = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin.encode())))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", typed)
        code = main(script, words)
    assert isinstance(out.buffer, io.BytesIO)
    return ToolResult(code, out.buffer.getvalue().decode(), err.getvalue())
