"""Battles as a person watches them, in a real browser that draws WebGL by software."""

import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protege.games.echelon.agents.match import Match, Setting, fight, play
from protege.games.echelon.page.views import EchelonViews
from protege.games.echelon.recordings.battle_report import flag
from protege.games.echelon.recordings.recording import Recorder, Recording
from protege.games.echelon.task.rewards import PARTS
from protege.games.echelon.task.teacher import Teacher
from protege.games.echelon.world.mechs import BLUE, MEDIUM, RED
from tests.dashboard.browsing import LONG_PATIENCE_S, Visits, chromium, visiting
from tests.dashboard.browsing import wait_until as wait_for_seconds
from tests.dashboard.serving import make_run, served
from tests.games.echelon.rules.fields import act, field, placed

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.needs("chromium", "playwright")]

# As on a machine without a graphics card, where whoever starts the browser allows WebGL all the same.
SOFTWARE = "--enable-unsafe-swiftshader"
# What a browser remarks about its graphics card, a server that has been stopped, and a file that was refused.
REMARKS = ("GPU stall due to ReadPixels", "ERR_CONNECTION", "status of 400")
LAPTOP, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
VIEW = "document.querySelector('.battle-view').view"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium(SOFTWARE) as opened:
        yield opened


@pytest.fixture
def visits(browser: Any) -> Iterator[Visits]:
    with visiting(browser) as visits:
        yield visits
    assert [error for error in visits.errors if not any(remark in error for remark in REMARKS)] == []


@pytest.fixture(scope="module")
def fights(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Ten against ten on a map of 100 x 100, and another player on the same seed."""
    folder = tmp_path_factory.mktemp("battles")
    paths = [folder / "hard.rec", folder / "easy.rec"]
    for path, blue in zip(paths, ("hard", "easy")):
        fight(blue, "medium", path, seed=3)
    return paths


@pytest.fixture(scope="module")
def page_of(fights: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("runs")
    with served(folder, {"echelon": EchelonViews(folder, fights)}) as page:
        yield page


def watch(visits: Any, page_of: Any, address: str = "#/echelon/battle?given=0", size: Any = LAPTOP) -> Any:
    page = visits.open(page_of.url + address, size)
    page.set_default_timeout(1000 * LONG_PATIENCE_S)
    page.locator(".battle-view[data-ready]").wait_for()
    return page


def wait_until(condition: Callable[[], Any]) -> None:
    """Patient: a busy machine without a graphics card may take seconds for a picture."""
    wait_for_seconds(condition, LONG_PATIENCE_S)


def ask(page: Any, expression: str) -> Any:
    return page.evaluate(f"() => {{ const view = {VIEW}; return {expression}; }}")


def seek(page: Any, time: float) -> None:
    """Stand still at a time, and wait until it is drawn."""
    ask(page, f"(view.play(false), view.seek({time}))")
    wait_until(lambda: ask(page, f"view.screens.every(({{ stage }}) => Math.abs(stage.time - {time}) < 1e-9)"))


def drawn(page: Any) -> int:
    return int(page.locator("canvas.battle-canvas").first.get_attribute("data-drawn") or 0)


def whole_canvas(page: Any, width: int = 1280, height: int = 720) -> None:
    """Make the picture itself this large."""
    more = page.evaluate("innerHeight - document.querySelector('canvas.battle-canvas').clientHeight")
    page.set_viewport_size({"width": width, "height": height + more})
    size = "[stage.canvas.clientWidth, stage.canvas.clientHeight]"
    wait_until(lambda: ask(page, f"view.screens.map(({{ stage }}) => {size})[0]") == [width, height])


def pictures_a_second(page: Any, begin: float, seconds: float) -> float:
    """How often the picture is drawn while the battle plays from `begin` on."""
    ask(page, f"(view.seek({begin}), view.play(true))")
    page.wait_for_timeout(300)
    first, since = drawn(page), time.perf_counter()
    page.wait_for_timeout(1000 * seconds)
    return (drawn(page) - first) / (time.perf_counter() - since)


# --- playing and scrubbing ---


def test_a_recording_plays_without_an_error_and_asks_nobody_else(visits, page_of):
    page = watch(visits, page_of)
    begin, pictures = ask(page, "view.time"), drawn(page)
    wait_until(lambda: drawn(page) >= pictures + 10 and ask(page, "view.time") > begin + 0.5)
    page.keyboard.press(" ")
    wait_until(lambda: not ask(page, "view.playing"))
    assert page.locator("canvas.battle-canvas").get_attribute("data-software") == "true"
    assert "Protege" in page.title() and page.locator(".race-name").all_inner_texts() == ["hard", "medium"]
    assert visits.hosts == {page_of.url.split("/")[2]}


def test_every_moment_is_the_same_world_from_either_direction_and_the_one_recorded(visits, page_of, fights):
    page, recording = watch(visits, page_of), Recording.open(fights[0])
    numbers = [0, 17, 40, 41, recording.frames // 2, recording.frames - 20, recording.frames - 1]
    found: dict[int, str] = {}
    for number in numbers:
        seek(page, number * 0.25)
        found[number] = ask(page, "view.fingerprint()")
        grid, poses = recording.materials(number), recording.frame(number).mechs
        alive = np.isfinite(poses["x"]) & flag(poses, "alive")
        places = np.stack([alive, poses["x"], poses["y"], poses["z"], poses["yaw"]], 1).astype("<f4")
        assert found[number].split()[0] == str(zlib.crc32(grid.tobytes())), f"voxels of frame {number}"
        assert found[number].split()[1] == str(zlib.crc32(places.tobytes())), f"mechs of frame {number}"
    assert len({text.split()[0] for text in found.values()}) > 3, "voxels break on the way"
    for number in [*reversed(numbers), 41, 0, recording.frames - 1, 17]:
        seek(page, number * 0.25)
        assert ask(page, "view.fingerprint()") == found[number], f"back at frame {number}"


def test_between_frames_mechs_move_smoothly_and_shots_fly_from_muzzle_to_target(visits, page_of):
    page = watch(visits, page_of)
    path = """(() => {
        const battle = view.battles[0];
        const i = battle.kinds.indexOf(2);
        return Array.from({ length: 101 }, (_, n) => battle.pose(i, 2 + n / 50).x);
    })()"""
    steps = np.abs(np.diff(ask(page, path)))
    assert steps.sum() > 3 and steps.max() < 5.5 / 50 * 2, "no jump is longer than a medium runs"
    flights = ask(page, "view.battles[0].flights.map(({ at, begin, end }) => ({ at, begin, end }))")
    assert len(flights) > 50 and all(0 < one["end"] - one["begin"] < 6 for one in flights if np.isfinite(one["end"]))
    for one in flights:
        times = [point["time"] for point in one["at"]]
        assert times == sorted(times)
        for a, b in zip(one["at"], one["at"][1:]):
            apart = np.hypot(a["x"] - b["x"], a["y"] - b["y"])
            assert apart <= 42 * (b["time"] - a["time"]) + 2.5, "nothing is faster than a gauss round"


def test_a_broken_voxel_rebuilds_only_its_surroundings(visits, page_of):
    page = watch(visits, page_of)
    broken = ask(page, "view.battles[0].changed[0].time")
    seek(page, broken - 0.01)
    before = ask(page, "view.screens[0].stage.rebuilt")
    seek(page, broken)
    assert 1 <= ask(page, "view.screens[0].stage.rebuilt") - before <= 8
    assert ask(page, "view.screens[0].stage.world.chunks.size") == 16


def test_a_battle_of_twenty_is_drawn_fast_enough_to_follow_whatever_else_the_machine_does(visits, page_of):
    """How fast is measured by the proof battle_viewer, on a machine that has nothing else to do."""
    page = watch(visits, page_of)
    whole_canvas(page)
    assert pictures_a_second(page, 8.0, 3.0) > 2


def test_a_slow_machine_computes_fewer_pixels_while_the_battle_plays_and_all_when_it_stands(visits, page_of):
    page = watch(visits, page_of)
    seek(page, 8.0)

    def after(pictures: int, seconds: float, playing: bool) -> Any:
        """Of all pixels, along a side: what it has come to, and what is shown."""
        code = f"""([times, ...pace]) => {{
            const {{ stage }} = {VIEW}.screens[0];
            while (times--) stage.keepPace(...pace);
            return [stage.fineness, stage.canvas.width / stage.canvas.clientWidth];
        }}"""
        return page.evaluate(code, [pictures, seconds, playing])

    # Every 13th picture may be coarser by an eighth: after 65 there have been four such steps, and it stays there.
    assert after(65, 0.2, True) == [0.5, 0.5]
    assert after(65, 0.2, True) == [0.5, 0.5]
    assert after(1, 0.2, False) == [0.5, 1]
    assert after(130, 0.01, True) == [1, 1]


# --- what a stranger is told ---


def test_score_zone_living_and_kills_stand_over_the_picture(visits, page_of, fights):
    page, recording = watch(visits, page_of), Recording.open(fights[0])
    last = recording.frame(recording.frames - 1)
    seek(page, (recording.frames - 1) * 0.25)
    text = [f"{score:.1f}" for score in last.now["score"]]
    wait_until(lambda: page.locator(".race-score").all_inner_texts() == text)
    alive = flag(last.mechs, "alive")
    kinds = [mech["kind"] for mech in recording.header["mechs"]]
    for team, name in enumerate(("blue", "red")):
        own = [kinds[i] for i in range(20) if alive[i] and recording.header["mechs"][i]["team"] == team]
        shown = page.locator(f".counts.{name} b").all_inner_texts()
        assert [int(count) for count in shown] == [own.count(kind) for kind in range(4)]
        assert page.locator(f".roster.{name} [data-state=dead]").count() == 10 - len(own)
    winner = ("Blue (hard)", "Red (medium)")[recording.header["result"]["winner"]]
    assert page.locator(".headline").inner_text().startswith(f"{winner} wins by ")
    kill = ask(page, "view.battles[0].moments.find(({ kind }) => kind === 'kill')")
    seek(page, kill["time"] + 0.3)
    wait_until(lambda: page.locator(".kills li").count() == 1)
    assert " leads by " in page.locator(".headline").inner_text() or "Level" in page.locator(".headline").inner_text()


def test_a_mech_is_chosen_and_tells_what_it_sees_wants_and_does(visits, page_of, fights):
    page, recording = watch(visits, page_of), Recording.open(fights[0])
    number = next(n for n in range(recording.frames) if (recording.frame(n).mechs["focus"][1:6] >= 0).any())
    seek(page, number * 0.25)
    mechs = recording.frame(number).mechs
    i = 1 + int(np.flatnonzero(mechs["focus"][1:6] >= 0)[0])
    page.locator(".roster.blue .mech").nth(i).click()
    panel = page.locator(".mech-panel")
    panel.locator("h2", has_text=f"Blue medium {i + 1}").wait_for()
    shown = panel.inner_text()
    target = recording.header["mechs"][int(mechs["focus"][i])]
    assert f"red {('scout', 'light', 'medium', 'heavy')[target['kind']]} {target['rank'] + 1}," in shown
    known = [j for j in range(10, 20) if int(mechs["knows"][i] | mechs["sees"][i]) >> j & 1]
    assert panel.locator(".contacts li").count() == len(known)
    assert f"{mechs['hp'][i]:.0f} / 150" in shown
    page.keyboard.press("Escape")
    panel.wait_for(state="hidden")


def test_each_camera_looks_where_it_says(visits, page_of):
    page = watch(visits, page_of)
    shots = ask(page, "view.screens[0].stage.rig.shots.map(({ moment }) => moment)")
    kills = [moment for moment in shots if moment and moment["kind"] == "kill"]
    assert len(kills) >= 3
    for kill in kills:
        seek(page, kill["time"])
        target = ask(page, "view.screens[0].stage.rig.target.toArray()")
        assert np.hypot(target[0] - kill["x"], target[1] - kill["y"]) < 12, "the director looks at the kill"
    page.click("[data-camera=follow]")
    seek(page, 8.0)
    i = ask(page, "view.chosen")
    pose, target = ask(page, f"view.battles[0].pose({i}, 8)"), ask(page, "view.screens[0].stage.rig.target.toArray()")
    assert np.hypot(target[0] - pose["x"], target[1] - pose["y"]) < 5.5
    page.click("[data-camera=team]")
    seek(page, 1.0)
    blue = ask(page, "view.screens[0].stage.rig.target.toArray()")
    page.click("[data-camera=team]")
    assert page.locator("[data-camera=team]").inner_text() == "team: red"
    seek(page, 1.25)
    red = ask(page, "view.screens[0].stage.rig.target.toArray()")
    assert np.hypot(blue[0] - red[0], blue[1] - red[1]) > 25, "the other team is elsewhere"
    box = page.locator("canvas.battle-canvas").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 400)
    page.mouse.down()
    page.mouse.move(box["x"] + 640, box["y"] + 420, steps=4)
    page.mouse.up()
    assert ask(page, "view.camera") == "free", "a hand on the picture takes the camera"
    turn = ask(page, "view.screens[0].stage.rig.hands.turn")
    page.wait_for_timeout(300)
    assert ask(page, "view.screens[0].stage.rig.hands.turn") == turn


def test_heat_maps_show_where_it_hurt(visits, page_of):
    page = watch(visits, page_of)
    page.click("[data-camera=free]")
    seek(page, 0)
    plain = page.locator("canvas.battle-canvas").screenshot()
    for kind in ("deaths", "damage"):
        page.get_by_label("Heat map").select_option(kind)
        wait_until(lambda: page.locator("canvas.battle-canvas").screenshot() != plain)
    page.get_by_label("Heat map").select_option("")
    wait_until(lambda: page.locator("canvas.battle-canvas").screenshot() == plain)


def test_values_and_reward_parts_of_a_learned_player_are_shown(visits, tmp_path):
    battles = field(placed(BLUE, MEDIUM, 10, 20), placed(RED, MEDIUM, 30, 20, yaw=3.1), length=40)
    about = {"players": ("pupil", "medium"), "seed": 1, "swapped": False}
    recorder = Recorder(battles, 0, about, {"value": ("value",), "reward": PARTS})
    for number in range(20):
        act(battles, {0: {"forward": 0.5}})
        parts = np.zeros((2, len(PARTS)))
        parts[0, PARTS.index("approach")] = 0.01 * number
        recorder.note(value=[0.25 * number, np.nan], reward=parts)
    file = tmp_path / "pupil.rec"
    file.write_bytes(recorder.to_bytes())
    with served(tmp_path, {"echelon": EchelonViews(tmp_path, [file])}) as page_served:
        page = watch(visits, page_served)
        seek(page, 2.5)  # frame 10 was noted with number 9
        page.locator(".roster.blue .mech").first.click()
        channels = page.locator(".channels")
        channels.wait_for()
        lines = channels.inner_text().split("\n")
        assert lines[lines.index("value") + 1] == "2.25" and lines[lines.index("approach") + 1] == "0.09"
        page.locator(".roster.red .mech").first.click()
        wait_until(lambda: channels.inner_text().split("\n")[2] == "–")


# --- where battles come from ---


DROP = """([name, bytes, size]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([size ? new Uint8Array(size) : new Uint8Array(bytes)], name));
    for (const type of ["dragover", "drop"]) {
        window.dispatchEvent(new DragEvent(type, { dataTransfer: carried, bubbles: true, cancelable: true }));
    }
}"""


def drop(page: Any, name: str, contents: bytes = b"", size: int = 0) -> None:
    page.evaluate(DROP, [name, list(contents), size])


def small_fight() -> bytes:
    found: dict[int, bytes] = {}
    setting = Setting("2v2", (40, 40), 40)
    play(Teacher("hard"), Teacher("easy"), [Match(5)], setting, names=("one", "two"), recorded=found.__setitem__)
    return found[0]


def test_a_file_is_opened_by_dropping_it(visits, tmp_path):
    with served(tmp_path, {"echelon": EchelonViews(tmp_path)}) as page_served:
        page = visits.open(page_served.url + "#/echelon/battle", LAPTOP)
        page.locator(".battle-note", has_text="Drop a recording here").wait_for()
        drop(page, "mine.rec", small_fight())
        page.locator(".battle-view[data-ready]").wait_for()
        assert page.locator("canvas.battle-canvas").get_attribute("data-name") == "mine.rec"
        wait_until(lambda: page.locator(".race-name").all_inner_texts() == ["one", "two"])
        assert visits.hosts == {page_served.url.split("/")[2]}


def test_what_cannot_be_shown_is_refused_with_one_line_and_the_battle_stays(visits, page_of):
    page, whole = watch(visits, page_of), small_fight()
    middle = len(whole) // 2
    hurt = whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]
    cases = (
        ("cut.rec", whole[:-1], 0, "cut.rec is cut off: "),
        ("tiny.rec", whole[:12], 0, "tiny.rec is cut off after 12 bytes"),
        ("long.rec", whole + b"x", 0, "long.rec is too long"),
        ("hurt.rec", hurt, 0, "hurt.rec is damaged (block "),
        ("head.rec", whole[:60] + b"!" + whole[61:], 0, "head.rec is damaged (its header "),
        ("next.rec", whole[:8] + b"\x63" + whole[9:], 0, "next.rec is a recording of version 99"),
        ("cat.png", b"\x89PNG" + bytes(500), 0, "cat.png is no Echelon recording"),
        ("empty.rec", b"", 0, "empty.rec is no Echelon recording"),
        ("huge.rec", b"", (1 << 26) + 1, "huge.rec has 67,108,865 bytes, recordings have at most 67,108,864"),
    )
    for name, contents, size, reason in cases:
        drop(page, name, contents, size)
        page.locator(f'.battle-view[data-refused^="{name}"]').wait_for()
        said = page.locator(".battle-view").get_attribute("data-refused")
        assert said.startswith(reason) and "\n" not in said
        assert page.locator(".toast.bad").last.inner_text() == said
    assert page.locator("canvas.battle-canvas").get_attribute("data-name") == "hard.rec"


def test_a_damaged_file_of_the_server_is_refused_in_the_page(visits, tmp_path):
    file = tmp_path / "hurt.rec"
    file.write_bytes(small_fight()[:-5])
    with served(tmp_path, {"echelon": EchelonViews(tmp_path, [file])}) as page_served:
        page = visits.open(page_served.url + "#/echelon/battle?given=0", LAPTOP)
        page.locator(".battle-note.bad", has_text="hurt.rec is cut off").wait_for()


def test_two_players_on_the_same_seed_are_seen_side_by_side(visits, page_of):
    page = watch(visits, page_of, "#/echelon/battle?given=0&beside=1")
    page.locator('.battle-view[data-ready="2"]').wait_for()
    assert page.locator(".race-name").all_inner_texts() == ["hard", "medium", "easy", "medium"]
    seek(page, 6.0)
    same = ask(page, "view.battles.map(({ start }) => start.reduce((sum, one, i) => (sum + one * (i % 97)) | 0, 0))")
    assert same[0] == same[1], "the same map"
    cameras = ask(page, "view.screens.map(({ stage }) => stage.rig.hands)")
    assert cameras[0] == cameras[1]
    assert page.locator(".toast").count() == 0
    page.get_by_label("Beside it").select_option("")
    wait_until(lambda: page.locator("canvas.battle-canvas").count() == 1)


def test_battles_of_a_training_appear_as_they_finish_and_late_viewers_get_the_newest(visits, tmp_path):
    name = "document.querySelector('canvas.battle-canvas')?.dataset.name"
    with make_run(tmp_path, "pupil", 1) as run, served(tmp_path, {"echelon": EchelonViews(tmp_path)}) as page_served:
        page = visits.open(page_served.url + "#/echelon/battle?run=pupil", LAPTOP)
        page.locator(".battle-note", has_text="waiting for the first battle of pupil").wait_for()
        contents = small_fight()
        (run.recordings / "step-1.rec").write_bytes(contents)
        wait_until(lambda: page.evaluate(name) == "step-1.rec")
        (run.recordings / "step-2.rec").write_bytes(contents)
        wait_until(lambda: page.evaluate(f"!!{VIEW}.waiting"))
        assert page.evaluate(name) == "step-1.rec", "what is being watched is not taken away"
        late = visits.open(page_served.url + "#/echelon/battle?run=pupil", LAPTOP)
        wait_until(lambda: late.evaluate(name) == "step-2.rec")
        ask(page, "view.seek(1000)")
        wait_until(lambda: page.evaluate(name) == "step-2.rec")


# --- every screen ---


@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_the_page_fits_and_works_by_keys(visits, page_of, size):
    page = watch(visits, page_of, size=size)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for key, camera in (("2", "free"), ("3", "team"), ("4", "follow"), ("1", "director")):
        page.keyboard.press(key)
        assert page.locator(f"[data-camera={camera}]").get_attribute("aria-pressed") == "true"
    page.keyboard.press(" ")
    page.keyboard.press("Home")
    page.keyboard.press("k")
    first = ask(page, "view.battles[0].moments[0].time")
    wait_until(lambda: ask(page, "view.time") == pytest.approx(max(0.0, first - 1)))
    page.keyboard.press("ArrowRight")
    wait_until(lambda: ask(page, "view.time") == pytest.approx(max(0.0, first - 1) + 0.25))


def test_without_webgl_one_line_says_so(visits, page_of):
    page = visits.open("about:blank", LAPTOP)
    page.add_init_script("""
        const real = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
            return kind.startsWith("webgl") ? null : real.call(this, kind, ...more);
        };""")
    page.goto(page_of.url + "#/echelon/battle?given=0")
    page.locator(".battle-note.bad", has_text="this browser draws no WebGL").wait_for()


def test_views_come_and_go_without_leaving_a_picture_behind(visits, page_of):
    page = watch(visits, page_of)
    for _ in range(3):
        page.goto(page_of.url + "#/")
        page.locator(".battle-view").wait_for(state="detached")
        page.goto(page_of.url + "#/echelon/battle?given=1")
        page.locator(".battle-view[data-ready]").wait_for()
    assert page.locator("canvas.battle-canvas").count() == 1
