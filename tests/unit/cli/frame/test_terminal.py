"""When a command asks before it destroys something."""

import io
import sys

import pytest

from penstock.cli.frame.terminal import NotConfirmed, confirm


class Stream(io.StringIO):
    def __init__(self, *, typed: bool) -> None:
        super().__init__("n\n")
        self._typed = typed

    def isatty(self) -> bool:
        return self._typed


def ask(patch: pytest.MonkeyPatch, *, stdin: bool, stderr: bool) -> None:
    patch.setattr(sys, "stdin", Stream(typed=stdin))
    patch.setattr(sys, "stderr", Stream(typed=stderr))
    patch.setattr("click.confirm", lambda _question, **_options: False)
    confirm("Delete it?")


def test_a_script_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, stdin=False, stderr=True)


def test_a_person_at_a_plain_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(NotConfirmed, match=r"^nothing was done$"):
        ask(monkeypatch, stdin=True, stderr=True)


def test_a_question_that_the_user_cannot_see_is_not_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(NotConfirmed, match="pass --yes"):
        ask(monkeypatch, stdin=True, stderr=False)
