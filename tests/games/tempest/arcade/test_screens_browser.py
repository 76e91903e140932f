"""Arcade clients in the page, in a real browser: what a client's machine shows is what a viewer sees."""

import base64
import io
import threading
import time
from typing import Any

import numpy as np
import pytest

from protege.games.tempest.agents.players import find_player
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Bridge, BridgeConfig
from protege.games.tempest.page.views import TempestViews
from protege.games.tempest.rules import ram
from protege.games.tempest.task import drawing
from protege.games.tempest.task.env import starts
from tests.dashboard.browsing import wait_until
from tests.dashboard.serving import served
from tests.dashboard.test_browser import browser, drawn, visits, wait_for_pictures  # noqa: F401
from tests.games.tempest.arcade.client import Client, Listener, Machine

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.needs("chromium", "playwright")]


class Champion(Listener):
    name = "champion"

    def __init__(self) -> None:
        player: Any = find_player("champion")
        super().__init__(player.act)


def pixels(page: Any) -> np.ndarray:
    """The first game as it stands on the screen, as brightness (height, width)."""
    from PIL import Image

    address = page.locator(".live-view canvas.tube").first.evaluate("canvas => canvas.toDataURL()")
    image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    brightness: np.ndarray = np.asarray(image.convert("RGB")).max(2)
    return brightness


def pictures(page: Any) -> list[int]:
    """How many pictures each game has shown."""
    canvases = page.locator(".live-view canvas.tube").all()
    return [int(canvas.get_attribute("data-drawn") or 0) for canvas in canvases]


def near(lit: np.ndarray, reach: int) -> np.ndarray:
    """Where something lit is not farther away than so many pixels, sideways and up."""
    found = lit.copy()
    for axis in (0, 1):
        found = np.any([np.roll(found, step, axis) for step in range(-reach, reach + 1)], axis=0)
    return found


def test_a_clients_game_is_seen_as_its_machine_shows_it(tmp_path, visits):  # noqa: F811
    agent = Champion()
    with (
        Bridge(agent, BridgeConfig(port=0, silent_s=600.0, screens=tmp_path)) as bridge,
        served(tmp_path, {"tempest": TempestViews(tmp_path)}) as page_served,
        Client(bridge.port, wire.greet(name="cabinet 7"), patience=60.0) as client,
    ):
        machine = Machine(starts(1, seed=3, level=5)[0])
        while int(machine.row[ram.ENEMIES_IN_TUBE]) < 4 or not machine.row[ram.PSHOT_DEPTH]:
            client.play(machine)
        time.sleep(0.05)
        client.exchange(machine.packet())  # and now the machine stands still
        page = visits.open(f"{page_served.url}#/tempest/live?player=champion")
        wait_for_pictures(page, ".live-view canvas.tube", 5)
        assert page.locator(".live-view .control").inner_text() == "pupil"
        figures = page.locator(".live-view .figures dd").all_inner_texts()
        assert figures[0].replace(",", "") == str(int(ram.get_word(machine.row, ram.SCORE))) and figures[1] == "5"
        assert "1 connected, first cabinet 7: playing" in page.locator(".stage-note").inner_text()
        assert len(page.locator(".live-view .values li").all()) == 5
        shown = pixels(page)
        wanted = drawing.render(machine.row, *shown.shape).max(2)
        lit, due = shown > 70, wanted > 70
        assert due.sum() > 3000
        assert (lit & near(due, 4)).sum() > 0.97 * lit.sum(), "nothing where the machine shows nothing"
        assert (due & near(lit, 4)).sum() > 0.9 * due.sum(), "all but waiting nymphs and explosions"


def test_clients_are_watched_side_by_side_while_they_play_and_leave(tmp_path, visits):  # noqa: F811
    over = threading.Event()

    def play(number: int) -> None:
        machine = Machine(starts(1, seed=number, level=4 * number + 1)[0])
        with Client(bridge.port, wire.greet(name=f"cabinet {number}"), patience=60.0) as client:
            while not over.is_set():
                client.play(machine)
                time.sleep(0.02)

    with (
        Bridge(Champion(), BridgeConfig(port=0, screens=tmp_path)) as bridge,
        served(tmp_path, {"tempest": TempestViews(tmp_path)}) as page_served,
    ):
        clients = [threading.Thread(target=play, args=(number,)) for number in range(3)]
        for client in clients:
            client.start()
        try:
            page = visits.open(
                f"{page_served.url}#/tempest/live?player=champion&kind=arcade&server={bridge.port}&games=4"
            )
            wait_until(lambda: len(pictures(page)) == 4)
            wait_until(lambda: min(pictures(page)[:3]) > 20)
            assert pictures(page)[3] == 0, "three clients, three games"
            before = page.locator(".live-view .figures dd").nth(3).inner_text()
            wait_until(lambda: page.locator(".live-view .figures dd").nth(3).inner_text() != before)
        finally:
            over.set()
            for client in clients:
                client.join()
        wait_until(lambda: page.locator(".stage-note").inner_text() == "No client is connected.")
        page.locator(".tools select").first.select_option("watch")
        wait_until(lambda: page.locator('.live-view[data-kind="watch"]').count() == 1)
