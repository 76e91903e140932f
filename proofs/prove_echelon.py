"""Proofs about scripted players: no side is favoured, every level beats the one below, and battles worth watching."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from proofs.battle_figures import figures
from proofs.row import Stopwatch, write_row
from protege.games.echelon.agents.match import Match, Result, both_sides, find_player, play
from protege.games.echelon.recordings.recording import Recording
from protege.games.echelon.task.teacher import LEVELS
from protege.games.echelon.world.mechs import BLUE, CLASS_NAMES, NOBODY, RED, WEAPONS
from protege.seeds import EVALUATION, seed_of
from protege.statistics import wilson

pytestmark = pytest.mark.prove
SEED = 1


def timed(name: str, seeds: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do the work and leave a row about it behind; its figures."""
    clock = Stopwatch()
    found = work()
    row = {
        "command": f"make prove {name}",
        "seeds": seeds,
        **clock.spent(),
        "figures": found,
    }
    print(write_row(name.replace("_", "-"), row).read_text())
    return found


def points(results: list[Result]) -> float:
    """Blue's wins, draws as half of one."""
    return sum(1.0 if result.winner == BLUE else 0.5 if result.winner == NOBODY else 0.0 for result in results)


def test_echelon_mirror():
    """Equal sides on 500 maps, each from both sides: blue's share is within the 95 % interval of one half."""

    def work() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for level in ("medium", "hard"):
            results = play(find_player(level), find_player(level), both_sides(500, SEED))
            share = points(results) / len(results)
            low, high = wilson(points(results), len(results))
            found |= {
                f"{level}_matches": len(results),
                f"{level}_blue_share": round(share, 4),
                f"{level}_low": round(low, 4),
                f"{level}_high": round(high, 4),
                f"{level}_draws": sum(result.winner == NOBODY for result in results),
                f"{level}_seconds_mean": round(float(np.mean([result.seconds for result in results])), 1),
            }
        return found

    found = timed("echelon_mirror", f"500 evaluation maps of seed {SEED}, each from both sides", work)
    for level in ("medium", "hard"):
        assert found[f"{level}_low"] <= 0.5 <= found[f"{level}_high"], level


def test_echelon_levels():
    """Each level scores at least 65 % against the one below, over 200 matches."""
    names = list(LEVELS)
    pairs = list(zip(names[1:], names))

    def work() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for better, worse in pairs:
            results = play(find_player(better), find_player(worse), both_sides(100, SEED))
            low, high = wilson(points(results), len(results))
            key = f"{better}_against_{worse}"
            found |= {
                key: round(points(results) / len(results), 4),
                f"{key}_low": round(low, 4),
                f"{key}_high": round(high, 4),
                f"{key}_draws": sum(result.winner == NOBODY for result in results),
            }
        return found

    found = timed("echelon_levels", f"100 evaluation maps of seed {SEED}, each from both sides", work)
    for better, worse in pairs:
        assert found[f"{better}_against_{worse}"] >= 0.65, (better, worse)


def test_echelon_watchability():
    """`hard` against `hard` on 200 maps: contested, quick to begin, many ways to die, nobody stands about."""
    rows: list[dict[str, float]] = []

    def work() -> dict[str, Any]:
        maps = [Match(seed_of(EVALUATION, SEED, index)) for index in range(200)]
        play(
            find_player("hard"), find_player("hard"), maps,
            recorded=lambda _, contents: rows.append(figures(Recording(contents))),
        )  # fmt: skip
        return summary(rows)

    found = timed("echelon_watchability", f"200 evaluation maps of seed {SEED}, from one side", work)
    check_watchable(found)


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Means over the battles, and what only all of them together give."""
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    found: dict[str, Any] = {"battles": len(rows)}
    for name in (
        "lead_changes contested_share kills kills_per_minute friendly_kills deaths_by_ground knockdowns legged "
        "shutdowns shutdown_share missiles missiles_by_paint smokes smokes_before_retreat voxels_destroyed idle_share"
    ).split():
        found[name] = round(float(table[name].mean()), 4)
    found["first_hit_s_median"] = round(float(np.nanmedian(table["first_hit_s"])), 2)
    found["first_hit_s_90_percent"] = round(float(np.nanpercentile(table["first_hit_s"], 90)), 2)
    found["no_hit_at_all"] = int(np.isnan(table["first_hit_s"]).sum())
    for name in CLASS_NAMES:
        distances = table[f"fight_distance_{name}"]
        if not np.isnan(distances).all():  # scouts only paint
            found[f"fight_distance_{name}"] = round(float(np.nanmedian(distances)), 2)
    kills = {weapon.name: table[f"kills_{weapon.name}"].sum() for weapon in WEAPONS if weapon.damage}
    for name, count in kills.items():
        found[f"kill_share_{name}"] = round(float(count / sum(kills.values())), 4)
    found["seconds_mean"] = round(float(table["seconds"].mean()), 1)
    found["seconds_spread"] = round(float(table["seconds"].std()), 1)
    found["draw_rate"] = round(float((table["winner"] == NOBODY).mean()), 4)
    found["red_wins"] = round(float((table["winner"] == RED).mean()), 4)
    return found


def check_watchable(found: dict[str, Any]) -> None:
    """The targets that a good battle meets."""
    assert 0.25 <= found["contested_share"] <= 0.60
    assert found["first_hit_s_median"] < 25 and found["no_hit_at_all"] == 0
    assert max(value for name, value in found.items() if name.startswith("kill_share_")) <= 0.5
    assert found["shutdown_share"] < 0.10
    assert found["idle_share"] < 0.02
    assert found["draw_rate"] < 0.05
    assert found["knockdowns"] >= 1 and found["legged"] >= 0.5, "stability and legs matter"
