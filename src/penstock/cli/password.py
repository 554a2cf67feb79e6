"""Reads a new password: twice at a prompt, or the first line of standard input."""

import sys

import click

from penstock.errors import ConfigError


def ask_password(name: str) -> str:
    if sys.stdin.isatty():
        text: str = click.prompt(
            f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True
        )
        data = text.encode(errors="surrogateescape")
    else:
        data = sys.stdin.buffer.readline().rstrip(b"\r\n")
    try:
        text = data.decode()
    except UnicodeDecodeError:  # the exception would show the password
        raise ConfigError("the password is not UTF-8") from None
    if not text:
        raise ConfigError("the password is empty: give it on the first line of the input")
    return text
