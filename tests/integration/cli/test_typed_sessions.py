"""What commands do only on a terminal: questions, colours, progress bars, pages."""

import subprocess
import sys

import pytest
from confluent_kafka import Producer

from support.commands.command_stage import Stage
from support.commands.penstock_command import ENVIRONMENT, PENSTOCK
from support.commands.typed_session import typed_session

BOLD = "\x1b[1m"


def run(stage: Stage, *words: str, **typed: str) -> str:
    environ = {"PENSTOCK_BOOTSTRAP": stage.bootstrap, "XDG_CONFIG_HOME": str(stage.folder)}
    done = typed_session(words, {"[y/N]": typed["answer"]} if typed else {}, environ)
    return f"{done.screen}[{done.exit_code}]"


def test_a_person_is_asked_before_a_deletion(stage: Stage) -> None:
    run(stage, "topic", "create", "doomed")
    words = ("topic", "delete", "doomed")
    kept = run(stage, *words, answer="n\n")
    assert "Delete, with all records, doomed? [y/N]: n" in kept
    assert kept.endswith("penstock: nothing was done\n[2]")
    assert run(stage, *words, answer="y\n").endswith("deleted doomed\n[0]")


def test_dead_letters_are_purged_after_a_question_and_redriven_with_a_bar(stage: Stage) -> None:
    run(stage, "topic", "create", "asked.dlq")
    words = ("dlq", "purge", "asked.dlq")
    kept = run(stage, *words, answer="n\n")
    assert "Purge 0 dead letters of asked.dlq? [y/N]: n" in kept
    assert kept.endswith("penstock: nothing was done\n[2]")
    assert run(stage, *words, "--yes").startswith("purged 0 letters")
    assert "redriving [##############################] 100%" in run(
        stage, "dlq", "redrive", "asked.dlq"
    )


def test_a_person_is_asked_before_a_redrive_to_the_topics_in_dead_letters(stage: Stage) -> None:
    for topic in ("pay", "sell", "forged.dlq"):
        run(stage, "topic", "create", topic, "--partitions", "1")
    producer = Producer({"bootstrap.servers": stage.bootstrap})
    for origin in ("sell", "sell", "pay"):
        headers: dict[str, str | bytes | None] = {
            "penstock-error": "e",
            "penstock-origin-topic": origin,
        }
        producer.produce("forged.dlq", b"v", headers=headers)
    producer.flush(20)
    words = ("dlq", "redrive", "forged.dlq")
    kept = run(stage, *words, answer="n\n")
    assert "Redrive letters of forged.dlq: 1 to pay, 2 to sell? [y/N]: n" in kept
    assert kept.endswith("penstock: nothing was done\n[2]")
    assert "[y/N]" not in run(stage, *words, "--origin", "sell", "--to", "sell")
    assert "forged.dlq: 1 to pay? [y/N]" in run(stage, *words, answer="y\n")


def test_colours_are_used_only_on_a_terminal_that_wants_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(stage, "topic", "list", "events").startswith(BOLD)
    monkeypatch.setitem(ENVIRONMENT, "NO_COLOR", "1")
    assert run(stage, "topic", "list", "events").startswith("NAME ")
    piped = subprocess.run(
        [*PENSTOCK, "topic", "list", "events", "-b", stage.bootstrap],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert piped.stdout.startswith("NAME ")


def test_progress_is_drawn_on_a_terminal_unless_quiet(stage: Stage) -> None:
    words = ("bench", "produce", "measured", "--records", "10")
    assert "writing [##############################] 100%" in run(stage, *words)
    assert "writing" not in run(stage, *words, "--quiet")


@pytest.mark.skipif(sys.platform == "win32", reason="no pager there")
def test_a_long_table_is_paged(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "PAGER", "head -n 3")
    words = ("config", "describe", "topic", "events", "--all", "--format", "text")
    lines = run(stage, *words).splitlines()
    assert len(lines) == 4
    monkeypatch.setitem(ENVIRONMENT, "PAGER", "cat")
    assert len(run(stage, *words).splitlines()) > 24
