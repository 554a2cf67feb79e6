"""`penstock completion`: the script that makes a shell complete commands, topics and groups."""

import click
from click.shell_completion import get_completion_class

from penstock.cli.frame.command import Verb
from penstock.cli.output import is_data, print_json

INSTALLS = {
    "bash": "penstock completion bash > ~/.local/share/bash-completion/completions/penstock",
    "zsh": "penstock completion zsh > ~/.zfunc/_penstock",
    "fish": "penstock completion fish > ~/.config/fish/completions/penstock.fish",
}


@click.command(cls=Verb, example=[*INSTALLS.values(), 'eval "$(penstock completion bash)"'])
@click.argument("shell", type=click.Choice(list(INSTALLS)))
def completion(shell: str) -> None:
    """Print the script by which a shell completes commands, options, topics and groups."""
    kind = get_completion_class(shell)
    assert kind is not None
    names = {
        "complete_func": "_penstock_completion",
        "complete_var": "_PENSTOCK_COMPLETE",
        "prog_name": "penstock",
    }
    script = kind.source_template % names
    if is_data():
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script.strip())
