"""The colours of the console are readable, in light and dark mode."""

import re
from pathlib import Path

import pytest

import penstock.console

CSS = (Path(penstock.console.__path__[0]) / "static" / "console.css").read_text()
LEAST = 4.5
"""Minimum contrast of text, by WCAG 2 AA."""


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    ]
    red, green, blue = linear
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("ground", ["ground", "panel"])
@pytest.mark.parametrize("text", ["text", "dim", "link", "good", "bad", "warn"])
def test_text_has_enough_contrast_with_its_background(theme: int, ground: str, text: str) -> None:
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", CSS.split(":root")[theme + 1]))
    assert contrast(colours[text], colours[ground]) >= LEAST
