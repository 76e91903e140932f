"""Recorded battles: a refactoring leaves them as they are. A change of rules records them anew, in one line:

    python -m tests.games.echelon.rules.test_golden

golden/echelon/battles.json holds for each a chain of hashes over places, condition, scores and map, with a link for
every tenth decision. Maps and moves come from whole-number arithmetic, so that no library can change them.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protege.games.echelon.rules.events import EVENT_NAMES
from protege.games.echelon.rules.sim import Actions, Battles
from protege.games.echelon.world.mechs import (
    CHASSIS,
    FOLIAGE,
    GLASS,
    LAVA,
    RED,
    REINFORCED,
    RULES,
    SOLID,
    WATER,
    find_roster,
)
from protege.games.echelon.world.voxels import derive
from tests.games.echelon.rules.fields import blank

FILE = Path(__file__).parents[3] / "golden" / "echelon" / "battles.json"
BATTLES = {
    "1v1": "build",
    "5v5": "build",
    "10v10": "build",
    "20v20": "build",
    "base-10v10": "base",
    "suite-13v13": "suite",
}
DECISIONS, LINK_EVERY = 120, 10
FIELDS = (
    "x y z yaw vx vy vz hp leg_hp heat stability jet alive shut legged fallen painted sees knows quality sound".split()
)


def chances(key: int, count: int) -> np.ndarray:
    """Numbers in [0, 1) from a key: splitmix64, eight bits each."""
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key << 20)
    state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (state >> np.uint64(56)).astype(np.float64) / 256


def ruins(roster: str, rules: str) -> Battles:
    """Blocks of all sorts on 60 x 60 columns; blue in the lower half, red in the upper, a mech every six columns."""
    members = find_roster(roster).members()
    world = blank(1, 60, 60, len(members.team))
    for x, y, side, high, kind in chances(1, 5 * 60).reshape(60, 5):
        material = (SOLID, GLASS, FOLIAGE, REINFORCED, LAVA, WATER)[int(kind * 6)]
        top = 1 if material in (LAVA, WATER) else int(1 + high * 9)
        x, y, side = int(x * 56), int(y * 56), int(1 + side * 4)
        world.material[0, :top, y : y + side, x : x + side] = material
    for i, kind in enumerate(members.kind):
        x, y = 3.0 + 6 * (members.rank[i] % 10), 3.0 + 6 * (members.rank[i] // 10)
        y = 60 - y if members.team[i] == RED else y
        world.material[0, :, int(y) - 3 : int(y) + 3, int(x) - 3 : int(x) + 3] = 0
        world.spawn[0, i] = x, y, CHASSIS[kind].height / 2, 1.5 if members.team[i] != RED else -1.5
    derive(world, 0)
    world.zone[0] = 30, 30, 9
    world.seed[0] = 77
    return Battles(world, find_roster(roster), RULES[rules], length=2 * DECISIONS)


def hunt(battles: Battles, decision: int) -> Actions:
    """Everybody turns to the nearest enemy, walks there with some swaying, and fires at it most of the time."""
    mechs = battles.mechs[0]
    dx, dy = mechs["x"] - mechs["x"][:, None], mechs["y"] - mechs["y"][:, None]
    no_prey = (mechs["team"] == mechs["team"][:, None]) | (mechs["alive"] == 0)
    prey = np.where(no_prey, 1e9, dx * dx + dy * dy).argmin(1)
    dx, dy = dx[np.arange(len(mechs)), prey], dy[np.arange(len(mechs)), prey]
    drawn = chances(1000 + decision, 10 * len(mechs)).reshape(len(mechs), 10)
    turn = np.clip(mechs["cos"] * dy - mechs["sin"] * dx, -1, 1)
    move = np.stack([drawn[:, 0] * 1.5, drawn[:, 1] - 0.5, drawn[:, 2], turn], 1)
    pressed = drawn[:, 3:8] < (0.7, 0.7, 0.7, 0.05, 0.3)
    return battles.actions(move[None], pressed[None], (drawn[None, :, 8] * 3).astype(np.int64), prey[None])


def play(roster: str, rules: str) -> dict[str, Any]:
    """The chain of a battle, and in plain numbers what it came to."""
    battles = ruins(roster, rules)
    chain, links = b"", []
    for decision in range(1, DECISIONS + 1):
        battles.step(hunt(battles, decision))
        if decision % LINK_EVERY == 0 or battles.over[0]:
            parts = [battles.mechs[0][name] for name in FIELDS]
            parts += [battles.records["score"][0], battles.world.material[0], battles.world.hp[0]]
            chain = hashlib.blake2b(chain + b"".join(part.tobytes() for part in parts), digest_size=6).digest()
            links.append(chain.hex())
        if battles.over[0]:
            break
    tally = battles.mechs["tally"][0].sum(0)
    return {
        "decisions": decision,
        "score": battles.records["score"][0].tolist(),
        "events": tally.tolist(),
        "links": links,
    }


@pytest.mark.parametrize("roster", BATTLES)
def test_the_recorded_battles_are_played_again_alike(roster):
    assert play(roster, BATTLES[roster]) == json.loads(FILE.read_text())[roster]


def test_the_recorded_battles_hold_nearly_every_kind_of_event():
    recorded = json.loads(FILE.read_text()).values()
    counts = np.sum([battle["events"] for battle in recorded], axis=0)
    assert (counts > 0).sum() >= len(EVENT_NAMES) - 2, counts  # nobody gives orders, friends seldom die


if __name__ == "__main__":
    recording = {roster: play(roster, rules) for roster, rules in BATTLES.items()}
    FILE.write_text(json.dumps(recording, indent=1) + "\n")
