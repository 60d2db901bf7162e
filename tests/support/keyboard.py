"""A person at a keyboard in front of Chromium: Tab, Enter and typing, and nothing else."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Error, Page, sync_playwright

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# What a screen reader would say of the focused element, and where it leads.
FOCUSED = """() => {
    const one = document.activeElement;
    const labelled = document.getElementById(one.getAttribute("aria-labelledby") ?? "");
    const texts = [one.getAttribute("aria-label"), ...[...(one.labels ?? [])].map((label) => label.innerText),
        labelled?.innerText, one.innerText, one.placeholder, one.name, one.id];
    return {name: (texts.find((text) => text?.trim()) ?? "").trim(), href: one.getAttribute("href") ?? "",
        id: one.id, kind: one.tagName};
}"""


def browser_path() -> str | None:
    """An installed Chromium; none is ever downloaded."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def artefacts() -> Path:
    """Where screenshots go: NIGHTMILL_ARTEFACTS, or a folder that git ignores."""
    folder = Path(os.environ.get("NIGHTMILL_ARTEFACTS") or ROOT / ".nightmill" / "artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass
class Keyboard:
    """Drives one browser window. `page` is the tab in front."""

    context: BrowserContext
    page: Page
    shots: Path
    taken: list[Path] = field(default_factory=list)

    def open(self, url: str) -> None:
        """Type an address."""
        self.page.goto(url, wait_until="domcontentloaded")

    def reach(self, name: str = "", *, href: str = "", part: bool = False, timeout_s: float = 60) -> None:
        """Press Tab until an element of this name (or beginning, with `part`) and link is focused."""
        seen: list[tuple[str, str]] = []
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            focused = self.focused()
            known = focused["name"].startswith(name) if part else focused["name"] == name
            if (known or not name) and focused["href"].endswith(href) and focused["kind"] != "BODY":
                return
            seen.append((focused["name"][:40], focused["href"]))
            self.page.keyboard.press("Tab")
        self.shot("in-vain")
        raise AssertionError(f"Tab never came to {name!r} {href!r}; it came by {list(dict.fromkeys(seen))}")

    def follow(self, name: str = "", *, href: str = "", part: bool = False) -> None:
        """Reach an element and press Enter."""
        self.reach(name, href=href, part=part)
        self.page.keyboard.press("Enter")

    def fill(self, name: str, text: str, *, part: bool = False) -> None:
        """Reach a field and type."""
        self.reach(name, part=part)
        self.page.keyboard.type(text)

    def at(self, address: str, timeout_s: float = 30) -> None:
        """Wait until a tab shows this address, and look at it."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            for page in reversed(self.context.pages):
                if address in page.url:
                    self.page = page
                    page.wait_for_load_state("domcontentloaded")
                    return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"no tab came to {address}: {[page.url for page in self.context.pages]}")

    def read(self, *texts: str, timeout_s: float = 60) -> str:
        """Wait until the page's visible text holds these."""
        until = time.monotonic() + timeout_s
        while missing := [text for text in texts if text not in self.words()]:
            if time.monotonic() > until:
                self.shot("in-vain")
                raise AssertionError(f"{self.page.url} does not say {missing}: {self.words()[:2000]}")
            self.page.wait_for_timeout(200)
        return self.words()

    def reread(self, text: str, timeout_s: float = 60) -> str:
        """Load the page again until its visible text holds this."""
        until = time.monotonic() + timeout_s
        while text not in self.words() and time.monotonic() < until:
            self.page.wait_for_timeout(1000)
            self.page.reload()
        return self.read(text)

    def words(self) -> str:
        """The visible text, with single spaces."""
        return " ".join(str(self._ask("document.body.innerText")).split())

    def focused(self) -> dict[str, Any]:
        """The focused element's name, link and kind."""
        return dict(self._ask(FOCUSED))

    def _ask(self, expression: str) -> Any:
        """Ask the page; once more where it was just left for another one."""
        for _ in range(5):
            try:
                return self.page.evaluate(expression)
            except Error:
                self.page.wait_for_timeout(500)
        return self.page.evaluate(expression)

    def shot(self, name: str) -> None:
        """Keep what the window shows."""
        path = self.shots / f"{len(self.taken) + 1:02}-{name}.png"
        self.page.screenshot(path=path)
        self.taken.append(path)


@contextmanager
def at_the_keyboard(executable: str) -> Iterator[Keyboard]:
    """A fresh browser without any stored login."""
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--no-proxy-server"]
        browser = playwright.chromium.launch(executable_path=executable, args=options)
        try:
            context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
            yield Keyboard(context, context.new_page(), artefacts())
        finally:
            browser.close()
