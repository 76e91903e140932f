"""What holds in every battle, whatever anybody does: limits, books that agree, teams that may be swapped."""

import hashlib
from typing import Any

import numpy as np

from protege.games.echelon.rules.battle import MECH
from protege.games.echelon.rules.events import ASSIST, DEATH, FRIENDLY_KILL, KILL, ZONE_ENTER, ZONE_LEAVE
from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.world.mechs import (
    BLUE,
    CHASSIS,
    MATERIAL_HP,
    NOBODY,
    RED,
    STOPS_BODIES,
    STOPS_SIGHT,
)
from tests.games.echelon.rules.fields import (
    copy_of,
    random_actions,
    restart_ended,
)

HALF_WIDTH = np.array([c.width / 2 for c in CHASSIS])
HALF_HEIGHT = np.array([c.height / 2 for c in CHASSIS])
MOST = {
    "hp": [c.hp for c in CHASSIS],
    "leg_hp": [c.leg_hp for c in CHASSIS],
    "stability": [c.stability for c in CHASSIS],
}


def fingerprint(battles: Battles) -> str:
    """Of everything a battle consists of."""
    digest = hashlib.sha256()
    for name, array in sorted(battles.save().items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def play(battles: Battles, seed: int, decisions: int) -> str:
    """Random actions by everybody, battle b's from (seed, b); ended battles begin anew."""
    streams = [np.random.default_rng([seed, b]) for b in range(battles.count)]
    pristine = copy_of(battles.world)
    for _ in range(decisions):
        restart_ended(battles, pristine)
        battles.step(random_actions(battles, *streams))
    return fingerprint(battles)


def check_places(battles: Battles, b: int) -> None:
    """Nobody alive is inside a wall, inside another, above the ceiling or outside the map."""
    mechs = battles.mechs[b][battles.mechs[b]["alive"] == 1]
    material = battles.world.material[b]
    size = np.array(material.shape[::-1])
    centre = np.stack([mechs["x"], mechs["y"], mechs["z"]], 1)
    half = np.stack([HALF_WIDTH[mechs["kind"]], HALF_WIDTH[mechs["kind"]], HALF_HEIGHT[mechs["kind"]]], 1)
    assert (centre - half >= -1e-6).all() and (centre + half <= size + 1e-6).all()
    for c, h in zip(centre, half):
        low, high = np.floor(c - h + 1e-5).astype(int), np.ceil(c + h - 1e-5).astype(int)
        assert not STOPS_BODIES[material[low[2] : high[2], low[1] : high[1], low[0] : high[0]]].any()
    gap = np.abs(centre[:, None] - centre) - (half[:, None] + half)
    assert (gap.max(2) + 10 * np.eye(len(mechs)) > -1e-5).all()


def check_condition(battles: Battles, b: int) -> None:
    """Everything within its limits, and numbers all the way."""
    mechs = battles.mechs[b]
    for name in MECH.names or ():
        assert np.isfinite(mechs[name]).all(), name
    for name, most in MOST.items():
        assert (mechs[name] >= 0).all() and (mechs[name] <= np.array(most)[mechs["kind"]]).all(), name
    assert (mechs["heat"] >= 0).all()
    assert (mechs["jet"] >= 0).all() and (mechs["jet"] <= 1).all()
    assert ((mechs["hp"] > 0) == (mechs["alive"] == 1)).all()
    assert (np.abs(mechs["yaw"]) <= np.pi + 1e-12).all()
    assert np.allclose(mechs["sin"], np.sin(mechs["yaw"]), atol=1e-14)


def check_books(battles: Battles, b: int) -> None:
    """Living, damage, kills, zone: every count agrees with every other."""
    mechs, battle = battles.mechs[b], battles.records[b]
    ledger = battle["ledger"][: len(mechs), : len(mechs)]
    dead = mechs["alive"] == 0
    for team in (BLUE, RED):
        assert battle["living"][team] == (~dead & (mechs["team"] == team)).sum()
    hostile = mechs["team"][:, None] != mechs["team"]
    assert ((ledger * hostile).sum(1) == mechs["dealt"]).all()
    assert ((ledger * ~hostile).sum(1) == mechs["friendly"]).all()
    assert (np.array(MOST["hp"])[mechs["kind"]] - mechs["hp"] == mechs["taken"]).all()
    assert (ledger.sum(0) <= mechs["taken"]).all()  # lava has no name in the ledger
    assert (mechs["tally"][:, DEATH] == dead).all()
    kills, friendly = mechs["tally"][:, KILL].sum(), mechs["tally"][:, FRIENDLY_KILL].sum()
    assert kills + friendly <= dead.sum()
    assert mechs["tally"][:, ASSIST].sum() <= kills * (len(mechs) - 1)
    assert (mechs["tally"][:, ZONE_ENTER] - mechs["tally"][:, ZONE_LEAVE] == mechs["inside"]).all()
    assert battle["events_lost"] == 0 and battle["changes_lost"] == 0


def check_map(battles: Battles, b: int) -> None:
    """Columns and HP follow from the materials."""
    material = battles.world.material[b]
    bit = np.uint32(1) << np.arange(len(material), dtype=np.uint32)[:, None, None]
    assert (battles.world.blocked[b] == (STOPS_BODIES[material] * bit).sum(0)).all()
    assert (battles.world.opaque[b] == (STOPS_SIGHT[material] * bit).sum(0)).all()
    assert (battles.world.hp[b] <= MATERIAL_HP[material]).all()
    assert (battles.world.hp[b][MATERIAL_HP[material] > 0] > 0).all()


def fight_mirrored(battles: Battles, mirror: Battles, seed: int) -> int:
    """Swap teams and streams in one of two equal batches, fight in both, compare all the time; how many died."""
    half = battles.mech_count // 2
    other = np.roll(np.arange(2 * half), half)  # the index of the same mech under the other label
    mirror.world.spawn[:] = mirror.world.spawn[:, other]
    mirror.reset()
    mirror.records["stream"] = mirror.records["stream"][:, ::-1]
    for each in (battles, mirror):
        each.mechs["hp"] *= 0.25  # so that many die
    rng = np.random.default_rng(seed)
    while not battles.over.any():
        actions = random_actions(battles, rng)
        battles.step(actions)
        named = np.append(other, NOBODY).astype(np.int16)
        swapped: list[Any] = [array[:, other] for array in actions]
        swapped[3] = named[swapped[3]]
        swapped[5][..., 1] = named[swapped[5][..., 1]]
        swapped[5][..., 2] = named[swapped[5][..., 2]]
        mirror.step(mirror.actions(*swapped))
        compare_mirrored(battles, mirror, other)
    return int((battles.mechs["alive"] == 0).sum())


def compare_mirrored(battles: Battles, mirror: Battles, other: np.ndarray) -> None:
    """Equal, but for the names of teams and mechs."""
    mine, theirs = battles.mechs, mirror.mechs[:, other]
    for name in MECH.names or ():
        if name in ("team", "pack", "leader"):
            continue
        expected = theirs[name]
        if name in ("painter", "focus", "order_from", "order_target"):
            expected = np.append(other, NOBODY)[expected]
        elif name in ("sees", "knows"):
            bits = expected[..., None] >> np.arange(len(other), dtype=np.uint64) & np.uint64(1)
            expected = (bits[..., other] << np.arange(len(other), dtype=np.uint64)).sum(-1, dtype=np.uint64)
        assert np.array_equal(mine[name], expected), name
    for name in ("tick", "living", "score", "share", "tonnage", "ending", "winner", "shot_count", "cloud_count"):
        expected = mirror.records[name]
        if expected.ndim == 2:
            expected = expected[:, ::-1]
        elif name == "winner":
            expected = np.where(expected == NOBODY, NOBODY, 1 - expected)
        assert np.array_equal(battles.records[name], expected), name
    assert np.array_equal(battles.world.material, mirror.world.material)
    assert np.array_equal(battles.world.hp, mirror.world.hp)
    swapped = mirror.records["ledger"][:, other][:, :, other]
    assert np.array_equal(battles.records["ledger"][:, : len(other), : len(other)], swapped)
