"""Films of battles: the map as a camera sees it, and pictures that show what was recorded."""

from pathlib import Path

import numpy as np
import pytest

from protege import ProtegeError
from protege.cli import __main__ as cli
from protege.games.echelon.agents.match import Match, Setting, play
from protege.games.echelon.recordings.battle_report import flag
from protege.games.echelon.recordings.film import TEAM_COLOURS, choose_views, film
from protege.games.echelon.recordings.recording import Recorder, Recording, write_recording
from protege.games.echelon.recordings.scenery import FACE_LIGHT, SKY, TINTS, Scenery, View, nearness
from protege.games.echelon.task.teacher import Teacher
from protege.games.echelon.world.mechs import AIR, BLUE, DIRT, LAVA, MEDIUM, RED, SOLID
from tests.games.echelon.rules.fields import act, field, placed


@pytest.fixture(scope="module")
def fight() -> Recording:
    found: dict[int, bytes] = {}
    setting = Setting("5v5", (40, 40), 120)
    play(Teacher("hard"), Teacher("easy"), [Match(4)], setting, names=("one", "two"), recorded=found.__setitem__)
    return Recording(found[0])


def flat(size: int = 20) -> np.ndarray:
    grid = np.zeros((20, size, size), np.uint8)
    grid[0] = DIRT
    return grid


# --- the map ---


def test_a_pixel_looks_at_the_ground_that_is_drawn_there():
    view = View(10.0, 12.0, 30.0, 300, 200)
    assert view.place(10.0, 12.0, 0.0) == (150.0, 100.0), "the middle is in the middle"
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0, 20, (2, 50))
    back = view.ground(*view.place(x, y, 0.0))
    assert np.allclose(back, (x, y))
    assert view.place(10.0, 12.0, 2.0)[1] < 100.0, "what is higher is drawn higher"


def test_a_block_hides_what_is_behind_it_and_shows_its_roof():
    grid = flat()
    grid[0:3, 8:12, 8:12] = SOLID
    scenery = Scenery(View(10.0, 10.0, 24.0, 240, 160), grid)
    column, row = (int(value) for value in scenery.view.place(10.5, 10.5, 3.0))
    roof = TINTS[SOLID] * FACE_LIGHT[2] * (0.82 + 0.022 * 2)
    tile = np.array([roof * 0.955, roof])
    assert np.abs(scenery.picture[row, column] - tile).max(1).min() < 1.5
    assert scenery.near[row, column] == pytest.approx(nearness(10.5, 10.5, 3.0), abs=0.3)
    foot = [int(value) for value in scenery.view.place(10.0, 10.0, 0.0)]  # under the block: its wall stands before it
    assert scenery.near[foot[1], foot[0]] > nearness(10.0, 10.0, 0.0) + 0.5


def test_lava_glows_and_nothing_is_outside_of_the_map():
    grid = flat()
    grid[0, 5, 5] = LAVA
    scenery = Scenery(View(10.0, 10.0, 60.0, 300, 200), grid)
    column, row = (int(value) for value in scenery.view.place(5.5, 5.5, 0.0))
    assert scenery.picture[row, column].tolist() == TINTS[LAVA].tolist()
    assert scenery.picture[0, 0].tolist() == list(SKY) and scenery.near[0, 0] == -np.inf


def test_drawing_only_what_changed_gives_the_picture_of_drawing_all():
    rng = np.random.default_rng(2)
    grid = flat(30)
    grid[0:4, 4:26:3, 4:26:4] = SOLID
    view = View(15.0, 15.0, 40.0, 240, 160)
    scenery = Scenery(view, grid)
    for _ in range(5):
        cells = np.flatnonzero(grid == SOLID)
        broken = rng.choice(cells, 6, replace=False)
        grid.flat[broken] = np.where(broken < 900, DIRT, AIR)
        scenery.update(broken)
        whole = Scenery(view, grid)
        assert (scenery.picture == whole.picture).all() and (scenery.near == whole.near).all()


# --- the film ---


def test_a_film_has_a_picture_for_every_moment_and_is_the_same_each_time(fight):
    last = 0.25 * (fight.frames - 1)
    pictures = list(film(fight, width=320, seconds=4.0, speed=2.0, rate=10.0))
    # 4 s at double speed are 2 s, 20 pictures and the last one; that one stays for another 1.5 s.
    assert len(pictures) == 20 + 1 + 15 and last > 4
    assert {picture.shape for picture in pictures} == {(180, 320, 3)} and pictures[0].dtype == np.uint8
    assert all((one != two).any() for one, two in zip(pictures[:20], pictures[1:20]))
    assert (pictures[-1] == pictures[20]).all()
    again = next(film(fight, width=320, seconds=4.0, speed=2.0, rate=10.0))
    assert (again == pictures[0]).all()


def test_both_teams_are_seen_in_their_colours_and_the_dead_are_not():
    battles = field(placed(BLUE, MEDIUM, 12, 20), placed(RED, MEDIUM, 17, 20, yaw=3.1), length=200)
    battles.mechs["hp"][0, 1] = 20.0
    recorder = Recorder(battles, 0, {"players": ("a", "b"), "seed": 1, "swapped": False})
    while not battles.over[0]:
        act(battles, {0: {"primary": True}})
        recorder.note()
    for _ in range(8):  # until the fire is out
        recorder.note()
    pictures = list(film(Recording(recorder.to_bytes()), width=320, rate=4.0))

    def seen(picture: np.ndarray, team: int) -> int:
        """Pixels of a team's colour, below the figures."""
        tint = np.array(TEAM_COLOURS[team]) / 255
        shown = picture[30:].reshape(-1, 3).astype(float)
        bright = shown.max(1) > 90
        ways = shown / np.maximum(1, np.linalg.norm(shown, axis=1))[:, None]
        return int((bright & (ways @ (tint / np.linalg.norm(tint)) > 0.97)).sum())

    assert seen(pictures[0], BLUE) > 60 and seen(pictures[0], RED) > 60
    assert seen(pictures[-1], BLUE) > 60 and seen(pictures[-1], RED) < 20


def test_every_camera_shows_whoever_is_alive(fight):
    size = (640, 360)
    views = choose_views(fight, 0.0, 0.25 * (fight.frames - 1), size)
    assert views[0][0] == 0.0 and 1 <= len(views) < 8
    inside = []
    for number in range(0, fight.frames, 4):
        view = [view for start, view in views if start <= number * 0.25][-1]
        mechs = fight.frame(number).mechs
        living = mechs[flag(mechs, "alive")]
        x, y = view.place(living["x"], living["y"], living["z"])
        inside += ((x > 0) & (x < size[0]) & (y > 0) & (y < size[1])).tolist()
    assert np.mean(inside) > 0.95


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"width": 20}, "width"),
        ({"speed": 0.0}, "speed"),
        ({"rate": 1000.0}, "rate"),
        ({"begin": 1e4}, "nothing to film"),
        ({"begin": -1.0}, "nothing to film"),
    ],
)
def test_a_film_that_cannot_be_is_refused(fight, options, reason):
    with pytest.raises(ProtegeError, match=reason):
        film(fight, **options)


@pytest.mark.needs("av", "imageio", "PIL")
@pytest.mark.parametrize("ending", ["gif", "mp4"])
def test_a_recording_becomes_a_file_that_players_open(fight, tmp_path: Path, capsys, ending):
    import imageio.v3

    source, out = tmp_path / "fight.rec", tmp_path / f"fight.{ending}"
    write_recording(source, fight.checked())
    words = ["record", "echelon", str(source), "--out", str(out), "--width", "240", "--seconds", "2", "--rate", "10"]
    assert cli.main(words) == 0
    assert "one against two" in capsys.readouterr().out
    pictures = imageio.v3.imread(out)
    # 2 s at double speed are 10 pictures and the last one, which stays for 15 more; a GIF joins equal ones.
    assert pictures.shape[1:3] == (134, 240) and (len(pictures) == 26 or ending == "gif")
