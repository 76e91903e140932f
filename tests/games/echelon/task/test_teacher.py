"""The scripted players: right moves in situations made by hand, and no use of what a mech cannot know."""

from math import atan2, cos, pi, sin
from typing import Any

import numpy as np
import pytest

from protege.games.echelon.rules.battle import COUNTERING, JAMMING, MECH, VENT
from protege.games.echelon.rules.events import KILL, SHUTDOWN
from protege.games.echelon.rules.sim import Actions, Battles
from protege.games.echelon.task.tactics import WORD
from protege.games.echelon.task.teacher import LEVELS, RandomPlayer, Teacher
from protege.games.echelon.world.maps import generate
from protege.games.echelon.world.mechs import (
    BLUE,
    BUILD,
    CHASSIS,
    HEAVY,
    LIGHT,
    MEDIUM,
    NOBODY,
    PRIMARY,
    RED,
    REINFORCED,
    SCOUT,
    SECONDARY,
    SPECIAL,
    TERTIARY,
    find_roster,
)
from protege.games.echelon.world.paths import distance_at, measure_paths, path_queue, waypoint
from tests.games.echelon.rules.fields import field, placed


def ready(*mechs: dict[str, Any], **options: Any) -> Battles:
    """A field with its distances measured; the zone is in the middle, 20, 20, with radius 5."""
    battles = field(*mechs, **options)
    rows, width = battles.world.blocked.shape[1:]
    for b in range(battles.count):
        measure_paths(battles.world, b, path_queue(width, rows))
    return battles


def everybody(battles: Battles) -> np.ndarray:
    return np.ones((battles.count, battles.mech_count), bool)


def moves(player: Teacher | RandomPlayer, battles: Battles, mechs: np.ndarray | None = None) -> Actions:
    actions = battles.no_actions()
    player.act(battles, everybody(battles) if mechs is None else mechs, actions)
    return actions


def heading_of(actions: Actions, battles: Battles, i: int) -> float:
    """Which way on the map a mech is told to walk, as an angle, before it has turned."""
    mech, (forward, strafe, _, turn) = battles.mechs[0, i], actions.move[0, i]
    yaw = mech["yaw"] + 0.5 * turn * CHASSIS[mech["kind"]].yaw_rate * 0.25
    return float(atan2(forward * sin(yaw) + strafe * cos(yaw), forward * cos(yaw) - strafe * sin(yaw)))


# --- walking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_alone_it_walks_round_a_wall_into_the_zone_and_stays(level):
    def wall(material):
        material[0:6, 10:40, 12:14] = REINFORCED  # from the upper edge down to y = 10: the way in is below

    battles = ready(placed(BLUE, MEDIUM, 5.0, 30.0), build=wall)
    start = distance_at(battles.world, 0, 0, 5.0, 30.0, 0.0)
    assert start > 30  # down 20, up again, 20 across, less the radius: far more than the straight 13
    player, seconds = Teacher(level), 0.0
    while not battles.mechs["inside"][0, 0]:
        battles.step(moves(player, battles))
        seconds += 0.25
        assert seconds < 1.3 * start / (5.5 * 0.98)
    for _ in range(20):
        battles.step(moves(player, battles))
        assert battles.mechs["inside"][0, 0]


def test_with_nobody_to_shoot_it_looks_where_it_goes():
    battles = ready(placed(BLUE, MEDIUM, 20.0, 5.0, yaw=0.0))
    for level in LEVELS:
        actions = moves(Teacher(level), battles)
        assert actions.move[0, 0, 3] > 0.5  # the zone is straight up the map: a quarter turn to the left
        assert heading_of(actions, battles, 0) == pytest.approx(pi / 2, abs=0.15)


def test_a_heavy_and_the_mediums_behind_it_all_reach_the_zone():
    """Play defect 4: heavies wedged where they started."""
    battles = Battles(generate([5, 6], size=(60, 60), roster="10v10"), find_roster("10v10"), length=500)
    battles.mechs["alive"][:, 10:] = 0  # nobody to fight
    battles.records["living"][:, RED] = 1
    start = battles.mechs[["x", "y"]].copy()
    player, entered = Teacher("medium"), np.zeros((2, 20), bool)
    for _ in range(240):
        if battles.over.any():
            break
        battles.step(moves(player, battles))
        entered |= battles.mechs["inside"] != 0
        if battles.records["tick"][0] == 15 * 20:
            heavies = battles.mechs["kind"][:, :10] == HEAVY
            moved = np.hypot(battles.mechs["x"] - start["x"], battles.mechs["y"] - start["y"])[:, :10]
            assert (moved[heavies] > 1).all()
    assert entered[:, :10].all()


def test_a_mech_that_does_not_get_on_backs_off_and_goes_aside():
    battles = ready(placed(BLUE, MEDIUM, 6.0, 20.0), placed(BLUE, HEAVY, 9.1, 20.0), length=400)
    battles.mechs["fallen"][0, 1] = 10_000  # lies in the way for good
    player, halves = Teacher("medium"), np.array([[True, False]])
    for _ in range(80):
        battles.step(moves(player, battles, halves))
    assert battles.mechs["inside"][0, 0]


def test_friends_make_room_for_each_other():
    battles = ready(placed(BLUE, MEDIUM, 10.0, 20.0), placed(BLUE, MEDIUM, 10.0, 22.6))
    left, right = (heading_of(moves(Teacher("medium"), battles), battles, i) for i in (0, 1))
    assert left < 0 < right or left < right - 0.2


# --- whom to shoot ---------------------------------------------------------------------------------------------------


def test_simple_levels_take_the_nearest_that_they_know():
    battles = ready(placed(BLUE, MEDIUM, 10.0, 20.0), placed(RED, MEDIUM, 20.0, 20.0), placed(RED, SCOUT, 10.0, 12.0))
    assert moves(Teacher("medium"), battles).target[0, 0] == 2
    battles.mechs["knows"][0, 0] = 0b010
    assert moves(Teacher("medium"), battles).target[0, 0] == 1
    battles.mechs["knows"][0, 0] = 0
    assert moves(Teacher("medium"), battles).target[0, 0] == NOBODY


def test_hard_takes_one_that_is_hurt_painted_or_turns_its_back():
    battles = ready(
        placed(BLUE, MEDIUM, 10.0, 20.0),
        placed(RED, MEDIUM, 18.0, 20.0, yaw=pi),
        placed(RED, MEDIUM, 10.0, 30.0, yaw=pi),
    )
    assert moves(Teacher("hard"), battles).target[0, 0] == 1  # 8 voxels against 10
    hurt = battles.mechs[0, 2]
    hurt["hp"] = 75.0  # half: worth 4 voxels
    assert moves(Teacher("hard"), battles).target[0, 0] == 2
    hurt["hp"] = 150.0
    hurt["painted"], hurt["painter"] = 50, 0
    assert moves(Teacher("hard"), battles).target[0, 0] == 2
    hurt["painted"], hurt["painter"] = 0, NOBODY
    hurt["yaw"], hurt["sin"], hurt["cos"] = pi / 2, 1.0, 0.0  # looks away
    assert moves(Teacher("hard"), battles).target[0, 0] == 2


def test_experts_say_whom_they_fight_and_join_in():
    battles = ready(
        placed(BLUE, MEDIUM, 10.0, 20.0), placed(BLUE, MEDIUM, 10.0, 28.0),
        placed(RED, MEDIUM, 18.0, 20.0, yaw=pi), placed(RED, MEDIUM, 17.0, 27.5, yaw=pi),
    )  # fmt: skip
    actions = moves(Teacher("expert"), battles)
    assert list(actions.target[0, :2]) == [2, 3]
    assert list(actions.message[0, :2, 0] * WORD) == [3.0, 4.0]
    battles.records["messages"][0, :2, 0] = 4.0 / WORD  # the pack fights mech 3
    assert list(moves(Teacher("expert"), battles).target[0, :2]) == [3, 3]
    assert list(moves(Teacher("hard"), battles).target[0, :2]) == [2, 3]


@pytest.mark.parametrize(("level", "decisions"), [("trivial", 4), ("easy", 2), ("medium", 0)])
def test_it_takes_its_time_to_notice_somebody(level, decisions):
    battles = ready(placed(BLUE, MEDIUM, 10.0, 20.0), placed(RED, MEDIUM, 16.0, 20.0, yaw=pi))
    player, noticed = Teacher(level), []
    for _ in range(6):
        actions = moves(player, battles)
        noticed.append(int(actions.target[0, 0]) != NOBODY)
        battles.records["decision"] += 1  # time goes by, nothing else
    assert noticed == [False] * decisions + [True] * (6 - decisions)


# --- shooting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "share"), [("trivial", 0.3), ("easy", 0.6), ("medium", 1.0)])
def test_it_fires_in_its_share_of_the_chances(level, share):
    battles = ready(placed(BLUE, MEDIUM, 10.0, 20.0), placed(RED, MEDIUM, 15.0, 20.0, yaw=pi), battles=1000)
    player = Teacher(level)
    for _ in range(5):  # past the reaction time
        actions = moves(player, battles)
        battles.records["decision"] += 1
    assert actions.buttons[:, 0, PRIMARY].mean() == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize(("level", "degrees"), [("trivial", 45), ("easy", 20), ("medium", 0)])
def test_its_aim_is_off_by_up_to_so_much(level, degrees):
    battles = ready(placed(BLUE, SCOUT, 10.0, 20.0), placed(RED, MEDIUM, 15.0, 20.0, yaw=pi), battles=1000)
    player = Teacher(level)
    for _ in range(5):
        actions = moves(player, battles)
        battles.records["decision"] += 1
    off = np.degrees(actions.move[:, 0, 3] * pi / 3)  # the target is straight ahead: a turn is an error
    assert abs(off).max() <= degrees + 0.01
    assert off.std() == pytest.approx(degrees / np.sqrt(3), rel=0.1)  # uniform


def test_each_weapon_is_fired_within_its_reach_arc_and_sight():
    """A medium: laser 8 voxels and 60 degrees to a side, painter 10 and 30, autocannon 12 and 45."""

    def pressed(distance: float, degrees: float) -> list[int]:
        angle = np.radians(degrees)
        x, y = 20.0 - distance * np.cos(angle), 20.0 - distance * np.sin(angle)
        battles = ready(placed(BLUE, MEDIUM, x, y), placed(RED, MEDIUM, 20.0, 20.0, yaw=pi))
        buttons = moves(Teacher("medium"), battles).buttons[0, 0]
        return [int(buttons[button]) for button in (PRIMARY, SECONDARY, TERTIARY)]

    assert pressed(7.9, 0) == [1, 1, 1]
    assert pressed(8.1, 0) == [0, 1, 1]
    assert pressed(10.1, 0) == [0, 0, 1]
    assert pressed(12.1, 0) == [0, 0, 0]
    assert pressed(7.0, 29) == [1, 1, 1]
    assert pressed(7.0, 31) == [1, 0, 1]
    assert pressed(7.0, 46) == [1, 0, 0]
    assert pressed(7.0, 61) == [0, 0, 0]


def test_a_heavy_fires_missiles_at_what_its_pack_painted_from_afar():
    def wall(material):
        material[0:8, 0:40, 20:22] = REINFORCED

    battles = ready(
        placed(BLUE, HEAVY, 5.0, 20.0),
        placed(BLUE, SCOUT, 16.0, 5.0),
        placed(RED, MEDIUM, 34.0, 20.0, yaw=pi),
        build=wall,
    )
    assert battles.mechs["knows"][0, 0] == 0
    battles.mechs["painted"][0, 2], battles.mechs["painter"][0, 2] = 50, 1
    battles.mechs["knows"][0, 0] = 0b100
    for level in ("medium", "hard", "expert"):
        assert moves(Teacher(level), battles).buttons[0, 0, SECONDARY], level


def test_simple_levels_vent_when_hot_and_hold_their_fire():
    battles = ready(placed(BLUE, MEDIUM, 10.0, 20.0), placed(RED, MEDIUM, 15.0, 20.0, yaw=pi))
    for heat, expected in ((75.0, [1, 1, 1, 0, 0]), (75.1, [0, 0, 0, 0, 1])):
        battles.mechs["heat"][0, 0] = heat
        assert list(moves(Teacher("medium"), battles).buttons[0, 0]) == expected


@pytest.mark.parametrize("level", ["hard", "expert"])
def test_skilled_players_never_shut_themselves_down(level):
    battles = ready(
        *(placed(BLUE, kind, 12.0, y) for kind, y in ((HEAVY, 14.0), (MEDIUM, 20.0), (LIGHT, 26.0), (SCOUT, 30.0))),
        placed(RED, HEAVY, 19.0, 20.0, yaw=pi), length=400,
    )  # fmt: skip
    battles.mechs["hp"][0, 4] = 1e6  # a target for the whole test
    player, mine = Teacher(level), np.array([[True, True, True, True, False]])
    for _ in range(200):
        battles.step(moves(player, battles, mine))
    assert battles.mechs["tally"][0, :4, SHUTDOWN].sum() == 0
    assert battles.mechs["dealt"][0, 0] > 0 and battles.mechs["dealt"][0, 1] > 0 and battles.mechs["dealt"][0, 2] > 0


def test_skilled_players_hide_in_smoke_and_back_off_when_hurt():
    battles = ready(placed(BLUE, MEDIUM, 8.0, 20.0), placed(RED, MEDIUM, 16.0, 20.0, yaw=pi), zone=(34.0, 20.0, 4.0))
    for level in ("medium", "hard"):
        battles.mechs["hp"][0, 0] = 150.0
        whole = moves(Teacher(level), battles)
        battles.mechs["hp"][0, 0] = 17.0  # of 150: below 12 %
        hurt = moves(Teacher(level), battles)
        assert not whole.buttons[0, 0, SPECIAL]
        assert hurt.buttons[0, 0, SPECIAL] == (level != "medium")
        slower = hurt.move[0, 0, 0] < whole.move[0, 0, 0] - 0.3
        assert slower == (level != "medium")


def test_expert_mediums_blind_their_target_and_shoot_on_through_the_smoke():
    battles = ready(placed(BLUE, MEDIUM, 10.0, 20.0), placed(RED, MEDIUM, 20.0, 20.0, yaw=pi))
    for level in ("medium", "hard", "expert"):
        assert moves(Teacher(level), battles).buttons[0, 0, SPECIAL] == (level == "expert")
    battles.mechs["sees"][0] = 0  # smoke; radar still shows both to each other
    for level in ("hard", "expert"):
        assert moves(Teacher(level), battles).buttons[0, 0, TERTIARY] == (level == "expert")
    for row in (19, 20, 21):
        battles.world.blocked[0, row, 15] = 0xFF  # now a wall
    assert not moves(Teacher("expert"), battles).buttons[0, 0, TERTIARY]


def test_skilled_players_leave_a_zone_in_which_their_side_is_outweighed():
    battles = ready(placed(BLUE, MEDIUM, 17.0, 20.0), placed(RED, MEDIUM, 26.0, 20.0, yaw=pi), zone=(20.0, 20.0, 8.0))
    battles.mechs["inside"] = 1
    for own, other, leaves in ((55.0, 55.0, False), (55.0, 105.0, False), (55.0, 115.0, True)):
        battles.records["tonnage"] = own, other
        hard, medium = (moves(Teacher(level), battles).move[0, 0, 0] for level in ("hard", "medium"))
        assert (hard < -0.3) == leaves, other  # backwards: the middle of the zone is ahead
        assert medium > 0.3


def test_simple_levels_step_back_from_whoever_is_too_close():
    battles = ready(placed(BLUE, MEDIUM, 10.0, 20.0), placed(RED, MEDIUM, 15.0, 20.0, yaw=pi))
    assert moves(Teacher("medium"), battles).move[0, 0, 0] == pytest.approx(-0.3, abs=0.01)
    battles.mechs["x"][0, 1] = 16.0
    assert moves(Teacher("medium"), battles).move[0, 0, 0] == pytest.approx(1.0, abs=0.01)


def test_an_expert_heavy_keeps_mediums_at_arms_length_and_an_expert_medium_closes_in():
    far = ready(placed(BLUE, HEAVY, 20.0, 20.0), placed(RED, MEDIUM, 29.0, 20.0, yaw=pi), zone=(20.0, 20.0, 9.0))
    far.mechs["inside"][0, 0] = 1
    assert moves(Teacher("expert"), far).move[0, 0, 0] < -0.5
    close = ready(placed(BLUE, MEDIUM, 20.0, 20.0), placed(RED, HEAVY, 31.0, 20.0, yaw=pi), zone=(20.0, 20.0, 9.0))
    close.mechs["inside"][0, 0] = 1
    assert moves(Teacher("expert"), close).move[0, 0, 0] > 0.5


def test_an_expert_aims_ahead_of_whoever_crosses_and_at_nobody():
    """At 10 voxels a shell takes 0.4 s: a target of 5 voxels/s is then 2 to the side, 0.2 rad."""
    battles = ready(placed(BLUE, MEDIUM, 10.0, 20.0), placed(RED, MEDIUM, 20.0, 20.0, yaw=pi / 2))
    battles.mechs["vy"][0, 1] = 5.0
    actions = moves(Teacher("expert"), battles)
    assert actions.target[0, 0] == NOBODY
    assert actions.move[0, 0, 3] * 0.25 == pytest.approx(np.arctan(0.2), abs=0.001)  # 1 rad/s for a quarter second
    assert moves(Teacher("hard"), battles).target[0, 0] == 1
    assert moves(Teacher("hard"), battles).move[0, 0, 3] == pytest.approx(0.0, abs=1e-6)


def test_expert_lights_take_the_flank_and_the_others_the_straight_way():
    world = generate([11], roster="10v10")
    battles = Battles(world, find_roster("10v10"))
    actions, straight = moves(Teacher("expert"), battles), moves(Teacher("hard"), battles)
    for i in range(10):
        kind, mech = battles.mechs["kind"][0, i], battles.mechs[0, i]
        differs = abs(actions.move[0, i] - straight.move[0, i]).max() > 0.01
        assert differs == (kind == LIGHT), (i, kind)
        wx, wy = waypoint(world, 0, int(kind == HEAVY), mech["x"], mech["y"], 0.0)
        assert (wx, wy) != (mech["x"], mech["y"])


# --- scouts ----------------------------------------------------------------------------------------------------------


def test_scouts_jam_and_expert_scouts_help_a_jammed_team():
    battles = ready(placed(BLUE, SCOUT, 10.0, 20.0), placed(RED, SCOUT, 25.0, 20.0, yaw=pi))
    assert moves(Teacher("medium"), battles).ewar[0, 0] == JAMMING
    battles.mechs["heat"][0, 0] = 60.0  # of 75
    assert moves(Teacher("medium"), battles).ewar[0, 0] == COUNTERING
    battles.mechs["heat"][0, 0] = 0.0
    assert moves(Teacher("hard"), battles).ewar[0, 0] == JAMMING
    assert moves(Teacher("expert"), battles).ewar[0, 0] == JAMMING
    battles.mechs["jam"][0, 0] = 0.7
    assert moves(Teacher("expert"), battles).ewar[0, 0] == COUNTERING
    battles.mechs["knows"][0, 0] = 0
    assert moves(Teacher("hard"), battles).ewar[0, 0] == 0


# --- knowledge and order ---------------------------------------------------------------------------------------------

HIDDEN = (
    "x y z vx vy vz yaw sin cos hp leg_hp heat stability jet shut legged fallen painted painter focus sees knows "
    "quality jam noise hit inside dealt taken order message"
).split()


def fought(level: str, decisions: int = 60) -> tuple[Battles, Teacher]:
    """Some battles in the middle of a fight."""
    battles = Battles(generate([1, 2, 3, 4], size=(60, 60), roster="10v10"), find_roster("10v10"))
    player = Teacher(level)
    for _ in range(decisions):
        if battles.over.any():
            break
        battles.step(moves(player, battles))
    return battles, player


@pytest.mark.parametrize("level", [*LEVELS, "random"])
def test_what_a_mech_does_not_know_does_not_move_it(level):
    battles, player = fought("medium" if level == "random" else level)
    rng, tried = np.random.default_rng(1), 0
    records, minds = battles.records.copy(), player.minds(battles).copy()
    for i in range(20):
        one = np.zeros((4, 20), bool)
        one[:, i] = battles.mechs["alive"][:, i] != 0
        judge: Any = RandomPlayer() if level == "random" else player
        player.minds(battles)[:] = minds
        expected = moves(judge, battles, one)
        for b in range(4):
            knows = int(battles.mechs["knows"][b, i])
            enemies = np.flatnonzero(battles.mechs["team"][b] != battles.mechs["team"][b, i])
            unknown = [j for j in enemies if not knows >> int(j) & 1]
            tried += len(unknown)
            for j in unknown:
                for name in set(HIDDEN) & set(MECH.names or ()):
                    value = battles.mechs[name][b, j]
                    battles.mechs[name][b, j] = type(value)(rng.integers(0, 20))
                battles.records["messages"][b, j] = rng.uniform(-1, 1, 8)
        player.minds(battles)[:] = minds
        found = moves(judge, battles, one)
        for name, wanted in expected._asdict().items():
            assert (wanted[one] == getattr(found, name)[one]).all(), (level, i, name)
        battles.records[:] = records
    assert tried > 100


@pytest.mark.parametrize("level", [*LEVELS, "random"])
def test_only_the_rows_asked_for_are_written_and_all_of_each(level):
    battles, _ = fought("medium", 30)
    player: Any = RandomPlayer() if level == "random" else Teacher(level)
    mine = np.zeros((4, 20), bool)
    mine[1:3, ::3] = True
    actions = battles.no_actions()
    for array in actions:
        array[...] = 77
    player.act(battles, mine, actions)
    for name, array in actions._asdict().items():
        assert (array[~mine] == 77).all(), name
        assert not (array[mine] == 77).any(), name


def test_all_levels_fight():
    for level in LEVELS:
        battles, _ = fought(level, 160)
        assert battles.mechs["dealt"].sum() > 0, level
    assert battles.mechs["tally"][..., KILL].sum() > 0


def test_the_spec_of_the_levels():
    rows = {name: (level.aim_error_deg, level.reaction_s, level.fire_probability) for name, level in LEVELS.items()}
    assert rows == {
        "trivial": (45, 1.0, 0.3),
        "easy": (20, 0.5, 0.6),
        "medium": (0, 0, 1.0),
        "hard": (0, 0, 1.0),
        "expert": (0, 0, 1.0),
    }
    assert BUILD.ticks_per_decision == 5 and VENT == 4
    with pytest.raises(Exception, match="no scripted player is called 'impossible'; there are trivial, easy"):
        Teacher("impossible")
