"""Proof that a battle is drawn fast enough without a graphics card: ten against ten, 100 x 100 columns, 1280 x 720.

The page computes fewer pixels where it would be too slow with all of them, and enlarges: both are measured.
"""

from typing import Any

import pytest

from proofs.row import Stopwatch, write_row
from tests.games.echelon.page.test_battle_viewer import (  # noqa: F401
    ask,
    browser,
    fights,
    page_of,
    pictures_a_second,
    seek,
    visits,
    watch,
    whole_canvas,
)

pytestmark = [pytest.mark.prove, pytest.mark.browser, pytest.mark.needs("chromium", "playwright")]

LEAST = 20.0  # pictures a second
SECONDS = 8.0


def test_battle_viewer(visits: Any, page_of: Any) -> None:  # noqa: F811
    """At least 20 pictures a second with every camera, from the thick of the fight on, as the page paces itself."""
    clock = Stopwatch()
    page = watch(visits, page_of)
    whole_canvas(page)
    figures: dict[str, Any] = {}
    for camera in ("free", "team", "follow", "director"):
        page.click(f"[data-camera={camera}]")
        pictures_a_second(page, 8.0, SECONDS / 2)  # until it has found its pace
        figures[f"{camera}_pictures_per_s"] = round(pictures_a_second(page, 8.0, SECONDS), 1)
        figures[f"{camera}_fineness"] = ask(page, "view.screens[0].stage.fineness")
    ask(page, "(view.screens[0].stage.keepPace = () => {}, view.screens[0].stage.renderer.setPixelRatio(1))")
    for camera in ("free", "team", "follow", "director"):
        page.click(f"[data-camera={camera}]")
        figures[f"{camera}_pictures_per_s_all_pixels"] = round(pictures_a_second(page, 8.0, SECONDS), 1)
    seek(page, 0.0)
    name = "document.createElement('canvas').getContext('webgl2')"
    info = f"(gl => gl.getParameter(gl.getExtension('WEBGL_debug_renderer_info').UNMASKED_RENDERER_WEBGL))({name})"
    row = {
        "command": "make prove battle_viewer",
        "seeds": "map and battle 3",
        **clock.spent(),
        "machine": clock.machine | {"renderer": page.evaluate(info)},
        "figures": figures,
    }
    print(write_row("battle-viewer", row).read_text())
    assert min(figures[name] for name in figures if name.endswith("_per_s")) >= LEAST, figures
