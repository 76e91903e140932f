"""What scripts/discoveries counts, against situations made by hand and against games measured another way."""

import json
import runpy
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest

from protege.games.tempest.agents.players import evaluate
from protege.games.tempest.rules import ram, sim
from protege.games.tempest.task.env import Games, starts
from protege.seeds import EVALUATION

SCRIPTS = Path(__file__).parents[1] / "scripts"
counting = runpy.run_path(str(SCRIPTS / "discoveries"))
drawing = runpy.run_path(str(SCRIPTS / "figures"))

GAMES, FRAMES = 3, 2_000


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    out = tmp_path_factory.mktemp("discoveries") / "told.json"
    counting["main"](["--player", "teacher", "--games", str(GAMES), "--max-frames", str(FRAMES), "--out", str(out)])
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def teacher(told):
    return told["players"][0]


def empty_tube():
    """A game on the closed tube of level 1, nobody there, the player in lane 8."""
    row = sim.start_game(1, seed=5)
    row[ram.NYMPHS_LEFT] = 1
    row[ram.PLAYER_LANE], row[ram.PLAYER_EDGE], row[ram.PLAYER_POSITION] = 8, 9, 0x80
    return row


def put_enemy(row, kind, lane, depth):
    row[ram.ENEMY_TYPE], row[ram.ENEMY_LANE], row[ram.ENEMY_EDGE] = kind, lane, (lane + 1) & 15
    row[ram.ENEMY_DEPTH], row[ram.ENEMIES_IN_TUBE], row[ram.TYPE_COUNT] = depth, 1, 1
    row[ram.ENEMY_SCRIPT] = row[ram.FLIPPER_SCRIPT]


def count(before, after, command=(0, 0, 0)):
    moves = np.array([command], np.int8)
    moment = counting["Moments"](np.zeros(1, np.int64), before[None], after[None], moves, np.zeros_like(moves))
    tally = counting["Tally"](1)
    tally.add(moment)
    return {name: float(total[0]) for name, total in tally.sums.items()} | {
        name: dict(zip(counting["DISTRIBUTIONS"][name][0], bins.tolist(), strict=True))
        for name, bins in tally.bins.items()
    }


def test_a_flipper_that_is_shot_is_one_kill_of_150_points_at_its_depth():
    before = empty_tube()
    put_enemy(before, ram.FLIPPER, 8, 100)
    before[ram.PSHOT_LANE], before[ram.PSHOT_EDGE], before[ram.PSHOT_DEPTH], before[ram.PLAYER_SHOTS] = 8, 9, 92, 1
    after = before.copy()
    sim.step_game(after, False, False, False, 0)
    found = count(before, after)
    assert (found["points"], found["kills"], found["shot_kills"], found["zap_kills"]) == (150, 1, 1, 0)
    assert found["kills_by_depth"]["81-112"] == 1
    assert found["shots"] == 0  # the shot was in flight already
    assert (found["met"], found["shallowest"], found["frames_by_distance"]["0"]) == (1, 0, 1)


def test_an_enemy_shot_that_is_shot_down_is_no_kill():
    before = empty_tube()
    before[ram.ESHOT_LANE], before[ram.ESHOT_DEPTH], before[ram.ENEMY_SHOTS] = 8, 100, 1
    before[ram.PSHOT_LANE], before[ram.PSHOT_EDGE], before[ram.PSHOT_DEPTH], before[ram.PLAYER_SHOTS] = 8, 9, 88, 1
    after = before.copy()
    sim.step_game(after, False, False, False, 0)
    found = count(before, after)
    assert (found["kills"], found["shots_hit"], found["points"]) == (0, 1, 0)


def test_a_step_towards_a_rider_that_turns_over_is_told_from_a_step_away():
    before = empty_tube()
    put_enemy(before, ram.FLIPPER | ram.BETWEEN_LANES, 10, ram.RIM)  # about the line between lanes 9 and 10
    for spinner, way in ((-12, "towards it"), (12, "away"), (0, "stays")):  # a positive spinner lowers the lane
        after = before.copy()
        after[ram.PLAYER_POSITION] = 0x80 - spinner
        found = count(before, after, (0, 0, spinner))
        assert found["turning"] == 1
        assert found["turns_at_turning_rider"][way] == 1
        assert found["travel"] == abs(spinner) / 16


def test_the_crowd_is_where_most_enemies_are():
    before = empty_tube()
    for slot, lane in enumerate((11, 12, 13, 3)):  # lanes 11, 12 and 13 hold all three within 2 lanes; 11 is 3 away
        before[ram.ENEMY_LANE + slot], before[ram.ENEMY_DEPTH + slot] = lane, 200
    found = count(before, before)
    assert (found["crowded"], found["crowd"], found["nearest"]) == (1, 3, 3)


def test_the_height_of_a_spike_is_a_share_of_the_tube():
    before = empty_tube()
    after = before.copy()
    after[ram.DROPPING] = 0x80
    after[ram.SPIKE : ram.SPIKE + 16] = 240 - 56  # a quarter of the 224 from the far end to the rim
    found = count(before, after)
    assert (found["zooms"], found["spike"], found["spike_lowest"]) == (1, 0.25, 0.25)
    assert found["zooms_by_spike"]["to 40 %"] == 1


def test_the_score_is_the_one_that_evaluation_measures(teacher):
    measured = evaluate("teacher", games=GAMES, seed=1, max_frames=FRAMES)
    for name in ("score_mean", "score_mean_low", "score_mean_high", "level_mean", "frames_mean"):
        assert teacher[name] == pytest.approx(measured[name])
    assert teacher["cut"] == measured["truncated"]


def test_frames_that_pay_for_kills_are_the_frames_with_kills(teacher):
    games = Games(starts(GAMES, seed=1, domain=EVALUATION))
    paid = frames_played = 0
    while not (games.frames.over | (games.frames.frame >= FRAMES)).all():
        live = ~games.frames.over & (games.frames.frame < FRAMES)
        frames = games.step(games.frames.advice)
        paid += int((live & (frames.objective >= 50)).sum())
        frames_played += int(live.sum())
    sums = teacher["sums"]
    assert sums["frames"] == frames_played
    assert sums["unexplained"] == 0
    assert paid <= sums["kills"] <= 1.1 * paid + 30  # some frames have several, and a zap takes a frame for each


def test_every_histogram_adds_up_to_what_it_divides(teacher):
    whole = {"kills_by_depth": "kills", "zaps_by_depth": "zaps", "zaps_by_part": "zaps", "levels_by_zaps": "zooms",
             "zooms_by_spike": "zooms", "frames_by_distance": "met", "frames_by_open_lane": "open",
             "turns_beside_rider": "beside", "turns_at_turning_rider": "turning"}  # fmt: skip
    histograms = teacher["all"]["distributions"]
    assert {name: sum(bins) for name, bins in histograms.items()} == {
        name: teacher["sums"][total] for name, total in whole.items()
    }


def test_the_teacher_agrees_with_itself_and_fires_19_times_in_20(teacher):
    figures = teacher["all"]["figures"]
    assert figures["agreement"] == {"value": 1, "low": 1, "high": 1}
    assert figures["fire_held"]["value"] == pytest.approx(0.95, abs=0.01)
    for name, figure in figures.items():
        if figure["value"] is not None:
            assert figure["low"] <= figure["value"] <= figure["high"], name


def test_a_chart_is_a_picture_with_a_bar_for_every_bin_of_every_player(told, tmp_path):
    drawing["draw_comparison"](told, "spikes-at-zoom", tmp_path / "chart.svg")
    root = xml.parse(tmp_path / "chart.svg").getroot()
    bars = [bar for bar in root.iter("{http://www.w3.org/2000/svg}rect") if bar.get("rx")]
    counts = told["players"][0]["all"]["distributions"]["zooms_by_spike"]
    assert len(bars) == max(i for i, n in enumerate(counts) if n) + 1
    heights = np.array([float(bar.get("height", "nan")) for bar in bars])
    assert heights / heights.sum() == pytest.approx(np.array(counts[: len(bars)]) / sum(counts), abs=1e-3)


def test_ticks_are_round_and_reach_the_largest_value():
    assert drawing["ticks"](9.0) == [0, 2, 4, 6, 8, 10]
    assert drawing["ticks"](192_215.0) == [0, 50_000, 100_000, 150_000, 200_000]
