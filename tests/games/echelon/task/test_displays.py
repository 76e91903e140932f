"""Friends and enemies on the displays: as many, as far and as clear as the suite shows them."""

from typing import Any

import numpy as np
import pytest

from protege.games.echelon.rules.battle import JAMMING
from protege.games.echelon.world.mechs import (
    BLUE,
    HEAVY,
    LIGHT,
    MEDIUM,
    NOBODY,
    PACK_COMMAND,
    RED,
    SCOUT,
    SOLID,
    SQUAD_COMMAND,
    SUITES,
    find_roster,
)
from tests.games.echelon.rules.fields import act, placed, rough_field
from tests.games.echelon.task.watch import Watch, watch

# --- suites ----------------------------------------------------------------------------------------------------------


def crowd() -> Watch:
    """Two whole teams of 10v10 face to face on open ground."""
    battles = rough_field(find_roster("10v10"), size=(40, 40))
    battles.world.material[:] = 0
    for b in range(battles.count):
        battles.world.blocked[b] = battles.world.opaque[b] = 0
    battles.reset()
    return Watch(battles)


def test_enemies_have_slots_of_their_own_and_suites_decide_how_many():
    seen = crowd()
    kinds, suites = seen.battles.mechs[0]["kind"], seen.battles.mechs[0]["suite"]
    known = np.array([bin(int(bits)).count("1") for bits in seen.battles.mechs[0]["knows"]])
    assert known.min() >= 5
    mask = seen.observation.enemy_mask[0]
    own = np.array([sum(seen.enemy(i, n, "reported") == 0 for n in range(10) if mask[i, n]) for i in range(20)])
    limit = np.array([suite.contact_slots for suite in SUITES])[suites]
    assert (own == np.minimum(known, limit)).all()
    assert (own[kinds == HEAVY] == 5).all() and (own[kinds == SCOUT] == 10).all()
    assert (seen.observation.friend_mask[0].sum(1) == 5).all()  # five squad slots each


def test_contacts_are_nearest_first_but_painted_and_focused_ones_never_give_way():
    mechs = [placed(BLUE, HEAVY, 5, 20)] + [placed(RED, SCOUT, 9 + 2 * n, 20) for n in range(8)]
    seen = watch(*mechs)
    assert seen.observation.enemy_index[0, 0].tolist() == [1, 2, 3, 4, 5, NOBODY, NOBODY, NOBODY]
    seen.battles.mechs["painted"][0, 8], seen.battles.mechs["painter"][0, 8] = 9, 0
    seen.battles.mechs["focus"][0, 0] = 7
    seen.look()
    assert set(seen.observation.enemy_index[0, 0, :2]) == {7, 8}
    assert seen.observation.enemy_index[0, 0, 2:5].tolist() == [1, 2, 3]
    flags = [(seen.enemy(0, n, "painted"), seen.enemy(0, n, "focus")) for n in range(3)]
    assert sorted(flags) == [(0, 0), (0, 1), (1, 0)]


def test_sensor_range_reaches_as_far_as_the_suite_says():
    far = watch(placed(BLUE, SCOUT, 5, 5), placed(BLUE, MEDIUM, 5, 9), placed(RED, LIGHT, 55, 7), size=(60, 20))
    assert far.observation.enemy_mask[0].sum(1).tolist()[0] == 1  # 50 of 60 voxels
    assert not far.battles.mechs["knows"][0, 1]  # 50 of 40
    assert far.enemy(1, 0, "reported") == 1  # the medium hears of it


def test_fidelity_rounds_what_a_display_shows():
    seen = watch(placed(BLUE, HEAVY, 10, 10), placed(BLUE, LIGHT, 10, 20), placed(RED, MEDIUM, 18, 15))
    seen.battles.mechs["hp"][0, 2], seen.battles.mechs["stability"][0, 2] = 100, 33
    seen.look()
    assert seen.enemy(0, 0, "hp") == pytest.approx(2 / 3)  # fidelity 1 shows it as it is
    assert seen.enemy(1, 0, "hp") == pytest.approx(0.6)  # fidelity 0.6: in steps of 0.2
    assert seen.enemy(1, 0, "stability") == pytest.approx(0.4)
    assert (seen.enemy(0, 0, "clarity"), seen.enemy(1, 0, "clarity")) == pytest.approx((1.0, 0.6))


def test_what_is_only_on_radar_is_blurred_and_jamming_blurs_it_more():
    def wall(material):
        material[0:8, :, 15:17] = SOLID

    seen = watch(placed(BLUE, MEDIUM, 12, 10), placed(RED, MEDIUM, 18.7, 11.2), build=wall)
    assert not seen.battles.mechs["sees"][0, 0] and seen.battles.mechs["knows"][0, 0]
    # Fidelity 0.7 and quality 1: places in steps of 5 x 0.3 = 1.5: (18.0, 10.5, 1.5).
    assert seen.enemy(0, 0, "place") == pytest.approx([6.0 / 50, 0.5 / 50, 0], abs=1e-6)
    assert seen.enemy(0, 0, "facing").tolist() == [0, 0] and seen.enemy(0, 0, "seen") == 0
    seen.battles.mechs["quality"][0, 0] = 0.5
    seen.look()
    # Clarity 0.35: steps of 3.25: x 19.5, y 9.75, z 0 (1.5 is nearer to 0 than to 3.25).
    assert seen.enemy(0, 0, "clarity") == pytest.approx(0.35)
    assert seen.enemy(0, 0, "place") == pytest.approx([7.5 / 50, -0.25 / 50, -1.5 / 50], abs=1e-6)


def test_squad_displays_show_icons_status_or_everything():
    roster = find_roster("suite-6v6")
    seen = Watch(rough_field(roster, size=(60, 60)))
    mechs = seen.battles.mechs[0]
    mechs["hp"][:6] *= 0.5
    seen.look()
    icon, status = (int(np.flatnonzero(mechs["kind"] == kind)[0]) for kind in (SCOUT, MEDIUM))
    full = int(np.flatnonzero(mechs["suite"] == PACK_COMMAND)[0])
    assert seen.friend(icon, 0, "hp") == 0 and seen.friend(icon, 0, "class").sum() == 1
    assert seen.friend(status, 0, "hp") == 0.5 and seen.friend(status, 0, "legs") == 0
    assert seen.friend(full, 0, "hp") == 0.5 and seen.friend(full, 0, "legs") == 1
    assert all(seen.friend(full, n, "under_me") for n in range(5))
    shown = seen.observation.friend_index[0, icon].tolist()
    assert seen.friend(icon, shown.index(full), "commands_me") == 1


def test_a_commander_sees_whom_its_squad_fights():
    seen = Watch(rough_field(find_roster("suite-6v6"), size=(60, 60)))
    mechs = seen.battles.mechs[0]
    leader = int(np.flatnonzero(mechs["suite"] == PACK_COMMAND)[0])
    fighter, prey = 2, 8
    mechs["focus"][fighter], mechs["knows"][fighter] = prey, np.uint64(1 << prey)
    seen.look()
    slot = seen.observation.friend_index[0, leader].tolist().index(fighter)
    view = mechs[leader]
    dx, dy = mechs["x"][prey] - view["x"], mechs["y"][prey] - view["y"]
    expected = [dx * view["cos"] + dy * view["sin"], dy * view["cos"] - dx * view["sin"]]
    assert seen.friend(leader, slot, "fights") == 1
    assert seen.friend(leader, slot, "target") == pytest.approx(np.array(expected) / 50, abs=1e-6)
    other = 3
    slot = seen.observation.friend_index[0, other].tolist().index(fighter)
    assert seen.friend(other, slot, "fights") == 0


def test_reports_come_from_the_own_pack_and_fill_intel_slots():
    def wall(material):
        material[0:10, :, 24:26] = SOLID

    blue = [placed(BLUE, MEDIUM, 5, 20), placed(BLUE, SCOUT, 30, 20), placed(BLUE, MEDIUM, 5, 26, pack=1)]
    red = [placed(RED, LIGHT, 34 + 3 * (n % 2), 6 + 4 * n) for n in range(8)]
    seen = watch(*blue, *red, size=(48, 40), build=wall)
    known = [bin(int(bits)).count("1") for bits in seen.battles.mechs["knows"][0, :3]]
    assert known == [0, 8, 0]
    assert seen.observation.enemy_mask[0, :3].sum(1).tolist() == [6, 8, 0]  # a medium has 6 intel slots
    assert [seen.enemy(0, n, "reported") for n in range(6)] == [1] * 6
    assert seen.enemy(0, 0, "clarity") == pytest.approx(0.35)  # half of 0.7
    assert seen.own(0, "contacts") == pytest.approx([0, 1]) and seen.own(1, "contacts") == pytest.approx([8 / 20, 0])


def test_scouts_get_no_reports_but_see_what_their_pack_painted():
    def wall(material):
        material[0:10, :, 24:26] = SOLID

    blue = [placed(BLUE, SCOUT, 5, 20), placed(BLUE, MEDIUM, 30, 20)]
    seen = watch(*blue, placed(RED, LIGHT, 36, 20), placed(RED, LIGHT, 36, 26), size=(48, 40), build=wall)
    assert seen.observation.enemy_mask[0, 0].sum() == 0
    act(seen.battles, {1: {"secondary": True, "target": 2}})
    seen.battles.mechs["quality"][0, 0], seen.battles.mechs["knows"][0, 0] = 0.5, 0  # jammed: no use of paint by itself
    seen.look()
    assert seen.observation.enemy_index[0, 0].tolist() == [2, NOBODY]
    assert seen.enemy(0, 0, "reported") == 1 and seen.enemy(0, 0, "painted") == 1


def test_a_squad_leader_hears_from_the_leaders_of_its_packs():
    seen = Watch(rough_field(find_roster("suite-13v13"), size=(60, 60)))
    mechs = seen.battles.mechs[0]
    head = int(np.flatnonzero(mechs["suite"] == SQUAD_COMMAND)[0])
    reporter = int(np.flatnonzero((mechs["leader"] == head) & (mechs["pack"] != mechs["pack"][head]))[0])
    mechs["knows"][:] = 0
    mechs["painted"][:] = 0
    mechs["knows"][reporter] = np.uint64(1 << 20)
    seen.look()
    assert seen.observation.enemy_index[0, head, 0] == 20 and seen.observation.enemy_mask[0, head].sum() == 1
    assert seen.observation.friend_mask[0, head].sum() == 12


def test_a_mech_that_is_shut_down_sees_no_enemy_and_hears_no_report():
    seen = watch(placed(BLUE, MEDIUM, 10, 10), placed(BLUE, MEDIUM, 10, 16), placed(RED, MEDIUM, 16, 12))
    assert seen.observation.enemy_mask[0, 0].sum() == 1
    seen.battles.mechs["heat"][0, 0] = 300
    act(seen.battles)
    seen.look()
    assert seen.own(0, "shut") == 1 and seen.observation.enemy_mask[0, 0].sum() == 0
    assert seen.observation.enemy_mask[0, 1].sum() == 1


# --- contacts and weapons --------------------------------------------------------------------------------------------


def test_a_contact_says_which_buttons_would_hit_it():
    def fits(x: float, y: float, **change: Any) -> list[float]:
        seen = watch(placed(BLUE, HEAVY, 10, 20), placed(RED, LIGHT, x, y))
        for name, value in change.items():
            seen.battles.mechs[name][0, 1] = value
        seen.look()
        return list(seen.enemy(0, 0, "fits"))

    assert fits(16, 20) == [1, 1, 1, 1]  # laser 8, missile 12 by sight, gauss 20, smoke 20
    assert fits(19, 20) == [0, 1, 1, 1]
    assert fits(24, 20) == [0, 0, 1, 1]
    assert fits(34, 20) == [0, 0, 0, 0]
    assert fits(34, 20, painted=5, painter=0) == [0, 1, 0, 0]  # painted, the missile reaches 50
    assert fits(10, 27) == [0, 1, 0, 1]  # at right angles: only half-turn arcs
    assert fits(14, 22) == [1, 1, 0, 1]  # gauss is drawn to a focus within 0.2 rad


def test_the_gauss_pitch_is_the_elevation_that_meets_the_target():
    seen = watch(placed(BLUE, HEAVY, 10, 20), placed(RED, HEAVY, 26, 20))
    # 16 voxels at 40 a second: 0.4 s, a drop of 0.5 x 9.81 x 0.16 = 0.7848.
    assert seen.enemy(0, 0, "pitch") == pytest.approx(np.arctan2(0.7848, 16) / np.radians(45), abs=1e-6)


def test_an_emitter_shows_as_one_and_a_watcher_is_noticed():
    seen = watch(placed(BLUE, MEDIUM, 10, 20), placed(RED, SCOUT, 17, 20))
    act(seen.battles, {1: {"ewar": JAMMING}})
    seen.look()
    assert seen.enemy(0, 0, "emits") == 1 and seen.own(0, "watched") == 1
    # 7 voxels across and 0.6 up to the jammer; quality 1 - 0.85 x what it jams, of at most 1.5.
    jam = 1 - np.hypot(7, 0.6) / 50
    assert (seen.own(0, "jam"), seen.own(0, "quality")) == pytest.approx((jam, (1 - 0.85 * jam) / 1.5))
    assert seen.own(1, "ewar").tolist() == [1, 0]
    far = watch(placed(BLUE, MEDIUM, 10, 20), placed(RED, SCOUT, 20, 20))
    assert far.own(0, "watched") == 0
