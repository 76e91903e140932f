"""A real browser for tests: pages that are opened in it, and what went wrong in them."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from protege.cli.doctor import find_program

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LAPTOP = {"width": 1440, "height": 900}
PATIENCE_MS = 30_000
LONG_PATIENCE_S = 240.0  # where the game may have to be compiled first


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_program("chromium"), args=[*FLAGS, *flags])
        yield browser
        browser.close()


class Visits:
    """Opens pages, and remembers what went wrong in them and whom they asked."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.contexts: list[Any] = []
        self.errors: list[str] = []  # what the browser complained about
        self.crashes: list[str] = []  # what the page's own code did not catch
        self.hosts: set[str] = set()

    def open(self, url: str, size: dict[str, int] = LAPTOP, **options: Any) -> Any:
        context = self.browser.new_context(viewport=size, **options)
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self.note)
        page.on("pageerror", lambda error: self.crashes.append(f"{error}\n{error.stack}"))
        for event in ("request", "websocket"):
            page.on(event, lambda asked: self.hosts.add(re.sub(r"^\w+://([^/]*)/.*", r"\1", asked.url)))
        page.goto(url)
        return page

    def note(self, line: Any) -> None:
        if line.type in ("error", "warning"):
            self.errors.append(line.text)


@contextmanager
def visiting(browser: Any) -> Iterator[Visits]:
    """Visits that end with the block, and in which no page crashed."""
    visits = Visits(browser)
    yield visits
    for context in visits.contexts:
        context.close()
    assert visits.crashes == []


def wait_until(condition: Callable[[], Any], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
