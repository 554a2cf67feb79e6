"""Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

WAIT_MS = 30_000
NAMELESS = """() => {
  const found = [];
  const named = (each) => each.getAttribute("aria-label") || each.getAttribute("aria-labelledby");
  for (const each of document.querySelectorAll("input, select, textarea"))
    if (each.type !== "hidden" && !named(each) && !each.labels.length) found.push(each.outerHTML);
  for (const each of document.querySelectorAll("a, button, summary"))
    if (!named(each) && !each.textContent.trim()) found.push(each.outerHTML);
  for (const each of document.querySelectorAll("img, [role=img]"))
    if (!named(each) && !each.alt) found.push(each.outerHTML);
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  return found.concat(ids.filter((each, at) => ids.indexOf(each) !== at));
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path is not None, "chromium is missing: run scripts/install-peers"
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page with its own cookies; `errors` collects the messages of its console."""

    def __init__(
        self, browser: Browser, url: str, width: int = 1280, *, dark: bool = False
    ) -> None:
        self.url, self.errors = url, list[str]()
        self._context = browser.new_context(
            viewport={"width": width, "height": 900},
            base_url=url,
            color_scheme="dark" if dark else "light",
        )
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", lambda each: self._heard(each.type, each.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _heard(self, kind: str, text: str) -> None:
        if kind == "error":
            self.errors.append(text)

    def resize(self, width: int) -> None:
        self.page.set_viewport_size({"width": width, "height": 900})

    def too_wide_by(self) -> int:
        """Pixels by which the page scrolls sideways."""
        found = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(found))

    def nameless(self) -> list[str]:
        """Controls and pictures without a label or text, and duplicate ids."""
        return [str(each) for each in self.page.evaluate(NAMELESS)]

    def login(self, name: str, password: str) -> None:
        self.page.goto("/login")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()

    def close(self) -> None:
        self._context.close()
