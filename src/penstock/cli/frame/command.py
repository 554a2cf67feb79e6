"""`Verb` and `Noun`: the commands of `penstock`, and groups of them.

Every verb gets the options of `COMMON` and shows examples in its help. A noun resolves aliases, and
suggests the nearest name for an unknown one.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Final

import click

from penstock.cli.frame.option import COMMON, SECTIONS

VERB_ALIASES: Final = {
    "ls": "list",
    "desc": "describe",
    "new": "create",
    "rm": "delete",
    "lag": "describe",
    "seek": "reset",
}
"""Aliases of verbs; a noun has those whose verb it has."""


class Verb(click.Command):
    """A command; `example` is one call of it, or several."""

    def __init__(self, *args: Any, example: str | Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = [example] if isinstance(example, str) else list(example)
        taken = {spelling for each in self.params for spelling in each.opts}
        self.params += [each for each in COMMON if taken.isdisjoint(each.opts)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx) if isinstance(each, click.Option) else None
            if record is not None:
                sections[getattr(each, "section", SECTIONS[0])].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
                for each in self.examples:  # never wrapped: examples are copied
                    formatter.write(f"{'':{formatter.current_indent}}{each}\n")


class Noun(click.Group):
    """A group of verbs."""

    command_class = Verb
    aliases: ClassVar[Mapping[str, str]] = VERB_ALIASES

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in self.aliases:
            return super().get_command(ctx, self.aliases[cmd_name])
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            raise click.UsageError(
                f"No such command {word!r}.{did_you_mean(word, self.list_commands(ctx))}", ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.summary(ctx, name)) for name in self.list_commands(ctx)]
            )

    def summary(self, ctx: click.Context, name: str) -> str:
        """The first paragraph of a command's help."""
        command = self.get_command(ctx, name)
        assert command is not None
        return " ".join((command.help or "").partition("\n\n")[0].split())


class LazyNoun(Noun):
    """Knows its verbs by name and summary, and imports the module of a verb when it is called."""

    def __init__(
        self, *args: Any, room: str = "", verbs: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.room, self.verbs = room, dict(verbs or {})

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = self.aliases.get(cmd_name, cmd_name) if cmd_name not in self.verbs else cmd_name
        if name not in self.verbs:
            return None
        file = name.replace("-", "_")
        module = import_module(f"{self.room}.{file}")
        found = getattr(module, file, None) or getattr(module, f"{file}_")  # `list_`
        assert isinstance(found, click.Command)
        return found

    def summary(self, _ctx: click.Context, name: str) -> str:
        return self.verbs[name]


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A hint to append to a message; empty if no name is near."""
    from difflib import get_close_matches  # late: only needed for a mistake

    nearest = get_close_matches(word, known, n=1)
    return f" Did you mean {nearest[0]!r}?" if nearest else ""
