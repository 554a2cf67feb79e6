"""Parses a command line like Kafka's tools: one dash or two, abbreviations, `--option=value`."""

from collections.abc import Iterable, Mapping, Sequence

from penstock.kafka_tools.options import Option, Table, Takes


class UsageError(Exception):
    """A wrong command line: a sentence, and the command line that was probably meant."""

    def __init__(self, sentence: str, meant: Sequence[str] | None = None) -> None:
        super().__init__(sentence)
        self.meant = meant


class Arguments:
    """The parsed options, by their main names.

    `command` is the subcommand; `words` are the arguments that belong to no option.
    """

    def __init__(
        self,
        table: Table,
        values: Mapping[str, Sequence[str]],
        command: str | None,
        words: Sequence[str],
    ) -> None:
        self.command, self.words, self._values = command, words, values
        self._options = table.options
        self._defaults = {each.name: each.default for each in table.options}

    def has(self, *names: str) -> bool:
        """Whether any of these options was given."""
        return any(name in self._values for name in names)

    def takes(self, option: Option) -> bool:
        """Whether the tool has exactly this option; tools may use its name for something else."""
        return option in self._options

    def given(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self._values]

    def all(self, name: str) -> Sequence[str]:
        """All values of a repeatable option."""
        return self._values.get(name, ())

    def find(self, name: str) -> str | None:
        """The option's value, or its default; None if there is neither."""
        values = self._values.get(name)
        return values[-1] if values else self._defaults.get(name)

    def text(self, name: str) -> str:
        """The value of an option that is required or has a default."""
        found = self.find(name)
        if found is None:
            raise UsageError(f'Missing required argument "[{name}]"')
        return found

    def find_number(self, name: str) -> int | None:
        found = self.find(name)
        return None if found is None else int(found)

    def number(self, name: str) -> int:
        return int(self.text(name))

    # The checks of Kafka's tools, in their wording.

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                raise UsageError(f'Missing required argument "[{name}]"')

    def forbid(self, used: str, others: Iterable[str]) -> None:
        """Refuse options that cannot be combined with `used`."""
        if self.has(used):
            for name in others:
                if self.has(name):
                    raise UsageError(f'Option "[{used}]" can\'t be used with option "[{name}]"')


def parse(table: Table, words: Sequence[str]) -> Arguments:
    command = None
    options = known_options(table.all_options())
    values: dict[str, list[str]] = {}
    others: list[str] = []
    place, last = 0, len(words)
    while place < last:
        word = words[place]
        place += 1
        if not looks_like_option(word):
            if command is None and table.commands:
                command = _command(table, words, place - 1)
                options |= known_options(table.commands[command].options)
            else:
                others.append(word)
            continue
        name, equals, attached = word.lstrip("-").partition("=")
        option = _recognized(options, name, words, place - 1)
        found = values.setdefault(option.name, [])
        match option.takes:
            case Takes.NOTHING:
                pass
            case Takes.ONE:
                if not equals:
                    if place == last:
                        raise UsageError(f"Option {option.name} requires an argument")
                    attached = words[place]
                    place += 1
                found.append(_checked(option, attached))
            case Takes.OPTIONAL:
                if not equals and place < last and not looks_like_option(words[place]):
                    equals, attached = "=", words[place]
                    place += 1
                if equals:
                    found.append(_checked(option, attached))
            case Takes.MANY:
                taken = [attached] if equals else []
                while place < last and not looks_like_option(words[place]):
                    taken.append(words[place])
                    place += 1
                if not taken:
                    raise UsageError(f"Option {option.name} requires an argument")
                found += taken
        if len(found) > 1 and option.takes is not Takes.MANY and not option.repeats:
            raise UsageError(
                f"Found multiple arguments for option {option.name}, but you asked for only one"
            )
    every = {each.name: each for each in options.values()}
    merged = Table(table.name, table.about, list(every.values()), table.commands)
    return Arguments(merged, values, command, others)


def known_options(options: Iterable[Option]) -> dict[str, Option]:
    """Options by all their names."""
    return {name: each for each in options for name in (each.name, *each.also)}


def looks_like_option(word: str) -> bool:
    """Whether the word is an option: a dash and not a number. `-1` and `-` are values."""
    return word.startswith("-") and not word.lstrip("-").replace(".", "").isdigit() and word != "-"


def _recognized(
    options: Mapping[str, Option], name: str, words: Sequence[str], place: int
) -> Option:
    """The option with this name, or the only one that begins with it."""
    if name in options:
        return options[name]
    beginning = {each.name: each for key, each in options.items() if key.startswith(name)}
    if name and len(beginning) == 1:
        return next(iter(beginning.values()))
    nearest = None if beginning else _nearest(name, options)
    if nearest is None:
        raise UsageError(f"{name} is not a recognized option")
    tail = words[place].lstrip("-")[len(name) :]
    meant = [*words[:place], f"--{nearest}{tail}", *words[place + 1 :]]
    raise UsageError(f"{name} is not a recognized option; did you mean --{nearest}?", meant)


def _command(table: Table, words: Sequence[str], place: int) -> str:
    word = words[place]
    if word in table.commands:
        return word
    nearest = _nearest(word, table.commands)
    if nearest is None:
        choices = ", ".join(table.commands)
        raise UsageError(f"invalid choice: '{word}' (choose from {choices})")
    meant = [*words[:place], nearest, *words[place + 1 :]]
    raise UsageError(f"invalid choice: '{word}'; did you mean {nearest}?", meant)


def _nearest(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # late: only needed for a mistake

    found = get_close_matches(name, [each for each in known if len(each) > 1], n=1, cutoff=0.75)
    return found[0] if found else None


def _checked(option: Option, given: str) -> str:
    if option.kind is str:
        return given
    try:
        option.kind(given)
    except ValueError:
        raise UsageError(f"Cannot parse argument '{given}' of option {option.name}") from None
    return given
