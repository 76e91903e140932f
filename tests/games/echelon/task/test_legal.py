"""What a player may do: what is marked illegal has no effect, what is legal has."""

import numpy as np
import pytest

from protege.games.echelon.world.mechs import (
    BLUE,
    MEDIUM,
    PACK_COMMAND,
    RED,
    RULES,
    SCOUT,
    find_roster,
)
from tests.games.echelon.rules.fields import act, placed, random_actions, rough_field
from tests.games.echelon.task.watch import Watch, watch


def test_classes_have_the_buttons_jets_and_jammers_that_they_have():
    seen = watch(*(placed(BLUE, kind, 6 + 6 * kind, 20) for kind in range(4)), placed(RED, SCOUT, 36, 36))
    assert [seen.legal(i, "buttons") for i in range(4)] == [[1, 0, 0, 1, 1], [1] * 5, [1] * 5, [1] * 5]
    assert [seen.legal(i, "move")[2] for i in range(4)] == [1, 1, 0, 0]
    assert [seen.legal(i, "ewar") for i in range(4)] == [[1, 1, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert seen.legal(0, "target") == [1, 0, 0, 0, 1]  # the one contact, and none
    assert seen.legal(2, "order") == [1, 0, 0, 0, 0, 0] and not any(seen.legal(2, "order_to"))


def test_a_button_is_legal_if_its_weapon_is_ready_within_the_decision():
    for wait, fires in ((5, True), (6, False)):
        seen = watch(placed(BLUE, MEDIUM, 10, 20), placed(RED, MEDIUM, 16, 20))
        seen.battles.mechs["wait"][0, 0, 0] = wait
        seen.look()
        assert seen.legal(0, "buttons") == [fires, 1, 1, 1, 1]
        before = seen.battles.mechs["hp"][0, 1]
        act(seen.battles, {0: {"primary": True}})
        assert (seen.battles.mechs["hp"][0, 1] < before) == fires


def test_the_fallen_the_shut_down_and_the_dead_may_not():
    seen = watch(
        placed(BLUE, MEDIUM, 10, 20),
        placed(BLUE, MEDIUM, 10, 26),
        placed(BLUE, SCOUT, 10, 32),
        placed(RED, SCOUT, 36, 5),
    )
    mechs = seen.battles.mechs[0]
    mechs["fallen"][0], mechs["heat"][1], mechs["shut"][1] = 30, 200, 1
    mechs["alive"][2] = 0
    seen.look()
    assert seen.legal(0, "move") == [0] * 4 and seen.legal(0, "buttons") == [0, 0, 0, 0, 1]  # it can still vent
    assert seen.legal(1, "move") == [0] * 4 and seen.legal(1, "buttons") == [0] * 5
    assert seen.legal(2, "ewar") == [1, 0, 0] and seen.legal(2, "target") == [0, 0, 0, 1]
    assert not any(seen.legal(2, "move") + seen.legal(2, "buttons"))


def test_commanders_may_give_orders_to_those_below_them():
    seen = Watch(rough_field(find_roster("suite-6v6"), size=(60, 60)))
    leader = int(np.flatnonzero(seen.battles.mechs["suite"][0] == PACK_COMMAND)[0])
    assert seen.legal(leader, "order") == [1] * 6 and seen.legal(leader, "order_to") == [1] * 5
    assert seen.legal(0, "order") == [1, 0, 0, 0, 0, 0] and seen.legal(0, "order_to") == [0] * 5


@pytest.mark.parametrize(("roster", "rules"), [("10v10", "build"), ("suite-13v13", "suite")])
def test_an_illegal_action_changes_nothing(roster, rules):
    """The same random battles twice: once as drawn, once without whatever was marked illegal."""
    free, held = (rough_field(find_roster(roster), 3, seed=4, rules=RULES[rules], length=200) for _ in range(2))
    for battles in (free, held):
        battles.mechs["heat"][:, ::3] = 140  # some shut down
        battles.mechs["fallen"][:, 1::5] = 30  # some lie
        battles.mechs["stability"][:, ::4] = 4  # and some soon will
    seen, rng, removed = Watch(held), np.random.default_rng(8), 0
    for _ in range(50):
        actions = random_actions(free, rng)
        free.step(actions)
        legal = seen.look().legal
        move, buttons, ewar = actions.move * legal[..., :4], actions.buttons * legal[..., 4:9], actions.ewar.copy()
        ewar[~np.take_along_axis(legal[..., 9:12], ewar[..., None], 2)[..., 0]] = 0
        removed += int((buttons != actions.buttons).sum())
        held.step(held.actions(move, buttons, ewar, actions.target, actions.message, actions.order))
        wishes_ = {"forward", "strafe", "vertical", "turn", "buttons", "ewar", "bad_actions"}
        for name in set(free.mechs.dtype.names or ()) - wishes_:
            assert np.array_equal(free.mechs[name], held.mechs[name]), name
        assert np.array_equal(free.records["shots"], held.records["shots"])
        assert np.array_equal(free.world.material, held.world.material)
        if free.over.any():
            break
    assert removed > 1000
