"""What players see of a battle: in their own frame, within its ranges, and nothing that is hidden."""

from typing import Any

import numpy as np
import pytest

from protege.games.echelon.rules.battle import ADVANCE, FOCUS_FIRE
from protege.games.echelon.task import features
from protege.games.echelon.task.features import (
    CHANNELS,
    ENEMY,
    FRIEND,
    MECH_STATE,
    OWN,
    STATE,
    starts,
)
from protege.games.echelon.task.observation import Observation, observe
from protege.games.echelon.world.mechs import (
    BLUE,
    HEAVY,
    LIGHT,
    MEDIUM,
    NOBODY,
    PACK_COMMAND,
    RED,
    RULES,
    SCOUT,
    SOLID,
    find_roster,
)
from tests.games.echelon.rules.fields import act, copy_of, placed, random_actions, restart_ended, rough_field
from tests.games.echelon.task.watch import QUARTER_TURN, Watch, named, watch

SEEN_BY_PLAYERS = [name for name in Observation._fields if name not in ("state", "mechs")]


# --- the own frame ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yaw", [0.0, QUARTER_TURN, -2.0, 3.0])
def test_places_are_ahead_and_to_the_left_whatever_the_heading(yaw):
    ahead, left = np.array([np.cos(yaw), np.sin(yaw)]), np.array([-np.sin(yaw), np.cos(yaw)])
    x, y = np.array([20, 20]) + 6 * ahead + 3 * left
    seen = watch(placed(BLUE, MEDIUM, 20, 20, yaw), placed(RED, MEDIUM, x, y, yaw + 1.0), zone=(30, 20, 5))
    assert seen.enemy(0, 0, "place") == pytest.approx([6 / 50, 3 / 50, 0], abs=1e-6)
    distance = np.sqrt(45)
    assert seen.enemy(0, 0, "near") == pytest.approx(8 / (8 + distance))
    assert seen.enemy(0, 0, "bearing") == pytest.approx([6 / distance, 3 / distance])
    assert seen.enemy(0, 0, "facing") == pytest.approx([np.sin(1.0), np.cos(1.0)])
    zone = np.array([10, 0]) @ np.stack([ahead, left], 1)
    assert seen.own(0, "zone")[:2] == pytest.approx(zone / 50, abs=1e-6)
    assert seen.own(0, "facing") == pytest.approx([np.sin(yaw), np.cos(yaw)])


@pytest.mark.parametrize("yaw", [0.0, QUARTER_TURN, -2.5])
def test_a_mech_is_told_its_own_heading_and_its_velocity_along_it(yaw):
    seen = watch(placed(BLUE, MEDIUM, 20, 20, yaw), placed(RED, SCOUT, 35, 35))
    act(seen.battles, {0: {"forward": 1.0}})
    seen.look()
    assert seen.own(0, "velocity") == pytest.approx([5.5 * 0.98 / 10, 0, 0], abs=1e-6)
    act(seen.battles, {0: {"strafe": 0.5}})
    seen.look()
    assert seen.own(0, "velocity") == pytest.approx([0, 0.5 * 5.5 * 0.98 / 10, 0], abs=1e-6)
    assert seen.own(0, "move") == pytest.approx([0, 0.5, 0, 0])


def test_the_velocity_of_others_is_relative_and_in_the_own_frame():
    seen = watch(placed(BLUE, MEDIUM, 20, 10, QUARTER_TURN), placed(RED, SCOUT, 20, 18, 0.0))
    act(seen.battles, {0: {"forward": 1.0}, 1: {"forward": 1.0}})  # north at 5.39, east at 6.86
    seen.look()
    assert seen.enemy(0, 0, "velocity") == pytest.approx([-0.539, -0.686, 0], abs=1e-6)  # it falls behind, to the right
    mechs = seen.battles.mechs[0]
    dx, dy = mechs["x"][1] - mechs["x"][0], mechs["y"][1] - mechs["y"][0]
    across = np.hypot(dx, dy)
    assert seen.enemy(0, 0, "closing") == pytest.approx((5.39 * dy - 6.86 * dx) / across / 10, abs=1e-6)
    assert seen.enemy(0, 0, "crossing") == pytest.approx(dy / across)
    assert seen.enemy(0, 0, "behind") == pytest.approx(dx / across, abs=1e-6)


def test_the_way_leads_around_a_wall():
    def wall(material):
        material[0:6, 5:35, 18:20] = SOLID

    seen = watch(placed(BLUE, MEDIUM, 10, 20), zone=(30, 20, 5), build=wall)
    way = seen.own(0, "way")
    assert np.hypot(*way) == pytest.approx(1) and abs(way[1]) > 0.3  # not straight ahead
    # Straight it would be 15 to the zone's edge; around an end of the wall, 15 columns to the side, it is over 30.
    assert 30 / 50 < seen.own(0, "walk") < 45 / 50
    inside = watch(placed(BLUE, MEDIUM, 30, 20), zone=(30, 20, 5))
    assert (inside.own(0, "walk"), inside.own(0, "zone_radius")) == (0.0, pytest.approx(0.1))


def test_own_condition_by_hand():
    seen = watch(placed(BLUE, HEAVY, 20, 20), placed(BLUE, LIGHT, 10, 10), placed(RED, MEDIUM, 36, 36), length=200)
    heavy, light = seen.battles.mechs[0][0], seen.battles.mechs[0][1]
    heavy["hp"], heavy["leg_hp"], heavy["heat"], heavy["stability"] = 50, 25, 117, 40
    heavy["wait"] = [6, 50, 80, 0]
    heavy["ams_wait"], heavy["fallen"], heavy["suppressed"], heavy["painted"], heavy["painter"] = 10, 30, 12, 5, 2
    light["jet"], light["z"], light["grounded"] = 0.5, 6.0, 0
    light["hurt_x"], light["hurt_y"], light["hit"] = 0.6, 0.8, 1
    seen.look()
    found = [seen.own(0, name) for name in ("hp", "legs", "heat", "headroom", "stability", "hot", "painted")]
    assert found == pytest.approx([0.25, 0.25, 0.9, 0.1, 0.4, 1, 1])
    assert seen.own(0, "waits") == pytest.approx([0.5, 0.5, 1.0, 0])  # laser 12, smoke 100, gauss 80
    assert [seen.own(0, name) for name in ("ams_wait", "fallen", "suppressed")] == pytest.approx([0.5, 0.5, 0.5])
    assert seen.own(0, "class").tolist() == [0, 0, 0, 1]
    assert seen.own(0, "can").tolist() == [1, 1, 1, 1, 0, 0, 1]  # four buttons, no jets, no jammer, anti-missile
    assert seen.own(1, "can").tolist() == [1, 1, 1, 1, 1, 0, 0]
    assert (seen.own(1, "jet"), seen.own(1, "feet"), seen.own(1, "altitude")) == pytest.approx((0.5, 0.25, 0.25))
    assert seen.own(1, "hurt") == pytest.approx([0.6, 0.8, 0]) and seen.own(1, "hit") == 1
    assert seen.own(1, "living") == pytest.approx([1, 1]) and seen.own(1, "time") == 0


def test_score_share_margin_and_time_are_the_own_teams_first():
    seen = watch(placed(BLUE, MEDIUM, 20, 20), placed(RED, SCOUT, 22, 22), length=20)
    act(seen.battles)
    seen.look()
    # 55 t against 20 t: margin 35 / 75, share 0.25 + 0.75 x that; 2.5 of 5 s win.
    share = 0.25 + 0.75 * 35 / 75
    assert seen.own(0, "share") == pytest.approx([share, 0.25])
    assert seen.own(1, "share") == pytest.approx([0.25, share])
    assert (seen.own(0, "margin"), seen.own(1, "margin")) == pytest.approx((35 / 75, -35 / 75))
    assert seen.own(0, "score") == pytest.approx([share * 0.25 / 2.5, 0.25 * 0.25 / 2.5])
    assert (seen.own(0, "time"), seen.own(0, "inside")) == pytest.approx((0.05, 1))


# --- nothing leaks ---------------------------------------------------------------------------------------------------


def test_an_enemy_nobody_senses_changes_nothing_anybody_sees():
    seen = Watch(rough_field(find_roster("10v10"), 2, size=(90, 90), seed=5))
    rng, hidden = np.random.default_rng(1), 0
    for _ in range(12):
        seen.battles.step(random_actions(seen.battles, rng))
        for b in range(2):
            mechs = seen.battles.mechs[b]
            told = [np.bitwise_or.reduce(mechs["knows"][mechs["team"] == team]) for team in (BLUE, RED)]
            before = [array[b].copy() for array in seen.look()[:-2]]
            kept = mechs.copy()
            for j in np.flatnonzero(mechs["alive"]):
                watchers = mechs["team"] != mechs["team"][j]
                if told[1 - mechs["team"][j]] >> np.uint64(j) & np.uint64(1) or mechs["painted"][j]:
                    continue
                hidden += 1
                for name, value in {"x": 1.5, "y": -1.5, "z": 0.3, "yaw": 1, "hp": -3, "leg_hp": -3, "heat": 5}.items():
                    mechs[name][j] += value
                for name in ("vx", "vy", "vz", "stability", "jet"):
                    mechs[name][j] *= 0.5
                mechs["sin"][j], mechs["cos"][j] = mechs["cos"][j], -mechs["sin"][j]
                mechs["kind"][j] = (mechs["kind"][j] + 1) % 4
                mechs["wait"][j] += 1
                mechs["focus"][j] = int(np.flatnonzero(watchers)[0])
                after = seen.look()
                for name, array in zip(SEEN_BY_PLAYERS, before):
                    assert np.array_equal(array[watchers], getattr(after, name)[b][watchers]), name
                mechs[:] = kept
    assert hidden > 50


def test_what_one_mech_does_not_know_it_does_not_see_either():
    """A medium far from a scout of another pack: the scout's contacts are its own."""
    seen = watch(
        placed(BLUE, SCOUT, 10, 20), placed(BLUE, MEDIUM, 10, 24, pack=1), placed(RED, LIGHT, 60, 22), size=(70, 40)
    )
    assert seen.observation.enemy_mask[0, :2].sum(1).tolist() == [1, 0]


# --- limits ----------------------------------------------------------------------------------------------------------


def check_ranges(array: np.ndarray, fields: features.Fields, shown: str) -> None:
    for field_, start in zip(fields, starts(fields)):
        values = array[..., start : start + field_.size]
        assert values.min() >= field_.low - 1e-6 and values.max() <= field_.high + 1e-6, (shown, field_.name)


@pytest.mark.parametrize(
    ("roster", "rules"), [("10v10", "build"), ("20v20", "build"), ("suite-13v13", "suite"), ("base-5v5", "base")]
)
def test_every_value_stays_within_its_range_and_the_dead_see_nothing(roster, rules):
    battles = rough_field(find_roster(roster), 3, seed=6, rules=RULES[rules])
    battles.mechs["hp"][:] *= 0.5
    seen, pristine, rng = Watch(battles), copy_of(battles.world), np.random.default_rng(7)
    most_dead = 0
    for _ in range(40):
        restart_ended(battles, pristine)
        battles.step(random_actions(battles, rng))
        found = seen.look()
        check_ranges(found.own, OWN, "own")
        check_ranges(found.friends, FRIEND, "friends")
        check_ranges(found.enemies, ENEMY, "enemies")
        check_ranges(found.state, STATE, "state")
        check_ranges(found.mechs, MECH_STATE, "mechs")
        check_ranges(np.moveaxis(found.map, 2, -1), CHANNELS, "map")
        assert np.abs(found.messages).max() <= 1
        dead = battles.mechs["alive"] == 0
        assert (found.alive == ~dead).all()
        for group in ("own", "friends", "enemies", "map", "messages", "friend_mask", "enemy_mask"):
            assert not getattr(found, group)[dead].any(), group
        assert ((found.enemy_index >= 0) == found.enemy_mask).all()
        assert (found.enemies[~found.enemy_mask] == 0).all() and (found.friends[~found.friend_mask] == 0).all()
        assert found.enemies[found.enemy_mask].any(-1).all()
        most_dead = max(most_dead, int(dead.sum()))
    assert most_dead > 0


def test_swapping_the_teams_swaps_what_they_see():
    roster = find_roster("10v10")
    seen, mirror = (Watch(rough_field(roster, 2, seed=21)) for _ in range(2))
    half = seen.battles.mech_count // 2
    other = np.roll(np.arange(2 * half), half)
    mirror.battles.world.spawn[:] = mirror.battles.world.spawn[:, other]
    mirror.battles.reset()
    mirror.battles.records["stream"] = mirror.battles.records["stream"][:, ::-1]
    rng, named_ = np.random.default_rng(22), np.append(other, NOBODY).astype(np.int16)
    for _ in range(20):
        actions = random_actions(seen.battles, rng)
        seen.battles.step(actions)
        swapped: list[Any] = [array[:, other].copy() for array in actions]
        swapped[3] = named_[swapped[3]]
        swapped[5][..., 1:] = named_[swapped[5][..., 1:]]
        mirror.battles.step(mirror.battles.actions(*swapped))
        found, expected = seen.look(), mirror.look()
        for name in Observation._fields:
            theirs = getattr(expected, name)
            theirs = theirs[:, ::-1] if name in ("state", "mechs") else theirs[:, other]
            if name.endswith("index"):
                theirs = named_[theirs]
            assert np.array_equal(getattr(found, name), theirs), name


def test_observing_a_share_touches_no_other_battle():
    seen = Watch(rough_field(find_roster("5v5"), 3, seed=2))
    arrays: list[Any] = list(seen.observation)
    whole = [array.copy() for array in arrays]
    for array in arrays:
        array[...] = 7
    observe(seen.battles.records, seen.battles.world, seen.scratch, seen.observation, 1, 2)
    for array, kept in zip(arrays, whole):
        assert np.array_equal(array[1], kept[1])
        assert (array[0] == np.array(7).astype(array.dtype)).all() and (array[2] == array[0]).all()


# --- messages and orders ---------------------------------------------------------------------------------------------


def test_messages_reach_the_own_pack_at_the_next_look():
    seen = watch(placed(BLUE, MEDIUM, 10, 10), placed(BLUE, MEDIUM, 10, 16), placed(BLUE, MEDIUM, 10, 22, pack=1))
    said = np.arange(8) / 10
    act(seen.battles, {1: {"message": said}})
    seen.look()
    heard = seen.observation.messages[0]
    assert heard[0, 1] == pytest.approx(said) and heard[1, 1] == pytest.approx(said)
    assert not heard[2].any() and not heard[0, 0].any()
    act(seen.battles)
    assert not seen.look().messages.any()


def test_an_order_shows_to_whom_it_was_given():
    seen = Watch(rough_field(find_roster("suite-6v6"), size=(60, 60)))
    leader = int(np.flatnonzero(seen.battles.mechs["suite"][0] == PACK_COMMAND)[0])
    target = 7
    seen.battles.mechs["knows"][0, leader] |= np.uint64(1 << target)
    act(seen.battles, {leader: {"order": (ADVANCE, 0, 0)}})
    seen.look()
    assert seen.own(0, "order").tolist() == [0, 1, 0, 0, 0] and seen.own(0, "order_left") == pytest.approx(195 / 200)
    act(seen.battles, {leader: {"order": (FOCUS_FIRE, 0, target)}})
    seen.battles.mechs["knows"][0, leader] |= np.uint64(1 << target)
    seen.look()
    view, prey = seen.battles.mechs[0][0], seen.battles.mechs[0][target]
    dx, dy = prey["x"] - view["x"], prey["y"] - view["y"]
    assert seen.own(0, "order").tolist() == [1, 0, 0, 0, 0]
    assert seen.own(0, "order_place")[0] == pytest.approx((dx * view["cos"] + dy * view["sin"]) / 50, abs=1e-6)


# --- for critics -----------------------------------------------------------------------------------------------------


def test_critics_see_the_whole_battle_from_their_own_side():
    seen = watch(
        placed(BLUE, MEDIUM, 15, 20),
        placed(RED, SCOUT, 60, 60),
        placed(RED, HEAVY, 50, 50),
        size=(70, 70),
        zone=(25, 20, 5),
    )
    seen.battles.mechs["hp"][0, 2] = 100
    act(seen.battles, {0: {"target": 1}})
    found = seen.look()
    blue, red = found.mechs[0]
    assert named(blue[0], MECH_STATE, "place") == pytest.approx([-10 / 50, 0, 0], abs=1e-6)
    assert [named(row, MECH_STATE, "own") for row in blue] == [1, 0, 0]
    assert [named(row, MECH_STATE, "own") for row in red] == [1, 1, 0]
    assert np.array_equal(blue[[1, 2], 1:], red[[0, 1], 1:]) and np.array_equal(blue[0, 1:], red[2, 1:])
    assert named(found.state[0, RED], STATE, "hp") == pytest.approx([160 / 260, 1])
    assert named(found.state[0, BLUE], STATE, "living") == pytest.approx([1, 1])
