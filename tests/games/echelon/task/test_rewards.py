"""Rewards: what is meant to pay pays, by the numbers of the config, and no way around it pays anything."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protege import ProtegeError
from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.task.features import layout_of
from protege.games.echelon.task.observation import make_scratch, measure_walks
from protege.games.echelon.task.rewards import PARTS, REWARD_STATE, RewardConfig, compute_rewards, reset_reward_state
from protege.games.echelon.world.mechs import BLUE, HEAVY, LAVA, LIGHT, MEDIUM, NOBODY, RED, SCOUT, SOLID
from protege.games.echelon.world.paths import measure_paths, path_queue
from tests.games.echelon.rules.fields import act, ended, field, named, placed

PLAIN = RewardConfig(approach=1.0, own_fraction=1.0)  # nobody shares, so that numbers are easy to work out
LENGTH = 100  # decisions: 25 s, so that 12.5 points of score win
TO_WIN = 12.5


class Purse:
    """Battles, and what everybody in the first one has earned."""

    def __init__(self, *mechs: dict[str, Any], config: RewardConfig = PLAIN, progress: float = 1.0, **options: Any):
        self.battles: Battles = field(*mechs, length=options.pop("length", LENGTH), **options)
        self.config, self.weights = config, config.weights(progress)
        queue = path_queue(self.battles.world.blocked.shape[2], self.battles.world.blocked.shape[1])
        measure_paths(self.battles.world, 0, queue)
        self.walk = make_scratch(self.battles.world, layout_of(self.battles.roster), self.battles.rules).walk
        self.reward_state = np.zeros(self.walk.shape, REWARD_STATE)
        self.reward = np.zeros(self.walk.shape, np.float32)
        self.parts = np.zeros((*self.walk.shape, len(PARTS)), np.float32)
        self.history: list[np.ndarray] = []  # rewards (mechs,) by decision
        self.earned: list[np.ndarray] = []  # parts (mechs, PARTS) by decision
        measure_walks(self.battles.records, self.battles.world, self.walk, 0, 1)
        reset_reward_state(self.battles.records, self.walk, self.weights, self.reward_state, 0)

    @property
    def potential(self) -> np.ndarray:
        return np.array(self.reward_state["potential"][0])

    def act(self, wanted: dict[int, dict[str, Any]] | None = None, decisions: int = 1) -> list[dict[str, Any]]:
        happened = []
        for _ in range(decisions):
            happened += act(self.battles, wanted)
            measure_walks(self.battles.records, self.battles.world, self.walk, 0, 1)
            compute_rewards(
                self.battles.records, self.walk, self.weights, self.reward_state, self.reward, self.parts, 0, 1
            )
            self.history.append(self.reward[0].copy())
            self.earned.append(self.parts[0].copy())
        return happened

    def total(self, mech: int, part: str, discount: float = 1.0) -> float:
        """All that this part came to."""
        factors = discount ** np.arange(len(self.earned))
        return float(sum(f * p[mech, PARTS.index(part)] for f, p in zip(factors, self.earned)))

    def returns(self, mech: int, discount: float = 1.0) -> float:
        return float(sum(discount**t * reward[mech] for t, reward in enumerate(self.history)))


# --- the config ------------------------------------------------------------------------------------------------------


def test_weights_move_from_first_to_last_and_stay():
    config = RewardConfig(outcome_first=0.0, outcome=1.0, own_fraction_first=1.0, own_fraction=0.5, settled=0.5)
    for progress, outcome, own_fraction in ((0.0, 0.0, 1.0), (0.25, 0.5, 0.75), (0.5, 1.0, 0.5), (1.0, 1.0, 0.5)):
        weights = config.weights(progress)[0]
        assert (weights["outcome"], weights["own_fraction"]) == pytest.approx((outcome, own_fraction))
        assert weights["kill"] == config.kill


def test_a_config_that_pays_helpers_more_than_killers_is_refused():
    with pytest.raises(ProtegeError, match="must pay less than the kill; got 0.5 and 0.2"):
        RewardConfig(assist=0.5)
    with pytest.raises(ProtegeError, match=r"own_fraction must be in \[0, 1\]; got 1.5"):
        RewardConfig(own_fraction=1.5)


def test_fighting_is_small_beside_the_objective():
    """Ten enemies of the standard match, 1,250 HP, all killed by one team: what its ten members get for it, and for
    winning by score."""
    config = RewardConfig()
    fighting = 10 * (config.kill + config.assist) + 12.5 * config.damage
    winning = 10 * (config.score + config.outcome)
    assert fighting < 0.25 * winning


def test_the_card_lists_every_weight():
    card = (Path(__file__).parents[4] / "docs" / "echelon.md").read_text()
    text = card[card.index("## Rewards") :]
    for name, value in vars(RewardConfig()).items():
        if name.removesuffix("_first") not in ("outcome", "own_fraction"):
            assert f"| {name} | {value} |" in text
    first, last = RewardConfig().weights(0.0)[0], RewardConfig().weights(1.0)[0]
    for name in ("outcome", "own_fraction"):
        assert f"| {name}_first, {name} | {first[name]}, {last[name]} |" in text


# --- what pays -------------------------------------------------------------------------------------------------------


def test_walking_to_the_zone_pays_by_the_way_that_is_left():
    purse = Purse(placed(BLUE, SCOUT, 5, 20), placed(RED, SCOUT, 38, 38), zone=(30, 20, 5))
    assert purse.potential[0] == pytest.approx(1 - 20 / 200, abs=0.01)  # 20 voxels to the zone's edge
    before = purse.potential[0]
    purse.act({0: {"forward": 1.0}})
    assert purse.earned[0][0, 0] == pytest.approx(0.995 * purse.potential[0] - before, abs=1e-6)
    assert purse.potential[0] - before == pytest.approx(7 * 0.98 * 0.25 / 200, abs=1e-3)
    purse.act({0: {"forward": 1.0}}, 14)
    assert purse.potential[0] == 1.0


def test_walls_count_as_far_as_they_have_to_be_walked_around():
    def wall(material):
        material[0:6, 4:36, 18:20] = SOLID

    blocked = Purse(placed(BLUE, SCOUT, 12, 20), zone=(30, 20, 5), build=wall)
    free = Purse(placed(BLUE, SCOUT, 12, 20), zone=(30, 20, 5))
    assert free.potential[0] > blocked.potential[0] + 10 / 200


def test_the_teams_score_pays_every_member_and_costs_the_other_team():
    purse = Purse(placed(BLUE, MEDIUM, 20, 20), placed(BLUE, SCOUT, 5, 5), placed(RED, SCOUT, 38, 38))
    purse.act()
    step = 0.25 / TO_WIN
    score = [purse.total(i, "score") for i in range(3)]
    assert score == pytest.approx([step, step, -step], abs=1e-6)
    assert [purse.total(i, "presence") for i in range(3)] == pytest.approx([0.1 * step, 0, 0], abs=1e-6)


def test_damage_and_kills_pay_the_shooter():
    purse = Purse(placed(BLUE, MEDIUM, 10, 20), placed(RED, MEDIUM, 16, 20), placed(RED, SCOUT, 38, 38))
    purse.battles.mechs["hp"][0, 1] = 20
    hits = named(purse.act({0: {"primary": True, "target": 1}}, 4), "kill")
    assert len(hits) == 1
    assert purse.total(0, "damage") == pytest.approx(0.1 * 20 / 100)  # overkill is not paid
    assert purse.total(0, "kill") == pytest.approx(0.2)
    assert purse.total(1, "death") == pytest.approx(-0.2)
    assert purse.total(1, "damage") == purse.total(1, "kill") == 0


def test_the_outcome_reaches_every_member_dead_or_alive():
    purse = Purse(placed(BLUE, MEDIUM, 10, 20), placed(BLUE, SCOUT, 5, 5), placed(RED, MEDIUM, 16, 20))
    purse.battles.mechs["hp"][0, 1:] = 5
    purse.battles.mechs["alive"][0, 1], purse.battles.records["living"][0, 0] = 0, 1
    purse.act()  # it is now known that the scout is dead
    purse.act({0: {"primary": True, "target": 2}})
    assert purse.battles.over[0]
    assert [purse.total(i, "outcome") for i in range(3)] == [1, 1, -1]
    assert purse.history[-1][1] == pytest.approx(1)
    early = replace(PLAIN, outcome_first=0.25).weights(0.0)
    assert early[0]["outcome"] == 0.25


def test_a_draw_pays_nobody():
    purse = Purse(placed(BLUE, MEDIUM, 5, 5), placed(RED, MEDIUM, 35, 35), length=3)
    purse.act(decisions=3)
    assert purse.battles.over[0] and purse.battles.records["winner"][0] == -1
    assert [purse.total(i, "outcome") for i in range(2)] == [0, 0]


def test_the_team_shares_what_its_members_earn_the_dead_included():
    config = replace(PLAIN, own_fraction=0.7)
    mechs = [
        placed(BLUE, MEDIUM, 10, 20),
        placed(BLUE, SCOUT, 5, 5),
        placed(BLUE, SCOUT, 5, 9),
        placed(RED, MEDIUM, 16, 20),
    ]
    purse = Purse(*mechs, config=config)
    purse.battles.mechs["alive"][0, 2], purse.battles.records["living"][0, 0] = 0, 2
    purse.act()
    purse.act({0: {"primary": True, "target": 3}})
    own = purse.earned[-1][:, : PARTS.index("score")].sum(1)
    assert own[2] == 0 and own[0] > 0  # the dead earn nothing by themselves
    team = purse.earned[-1][:, PARTS.index("score") :].sum(1)
    mean = own[:3].sum() / 3
    assert purse.history[-1][:3] == pytest.approx(0.7 * own[:3] + 0.3 * mean + team[:3], abs=1e-6)
    assert purse.history[-1][3] == pytest.approx(own[3] + team[3], abs=1e-6)  # red has one member


# --- potentials ------------------------------------------------------------------------------------------------------


def wander(seed: int, decisions: int, **options: Any) -> tuple[Purse, float]:
    """A scout that runs about at random, and its first potential."""
    rng = np.random.default_rng(seed)
    purse = Purse(placed(BLUE, SCOUT, 12, 20), placed(RED, SCOUT, 38, 38), **options)
    first = purse.potential[0]
    for _ in range(decisions):
        purse.act({0: {"forward": rng.uniform(-1, 1), "strafe": rng.uniform(-1, 1), "turn": rng.uniform(-1, 1)}})
    return purse, first


@pytest.mark.parametrize("seed", range(3))
def test_discounted_approach_depends_on_the_first_and_the_last_place_alone(seed):
    purse, first = wander(seed, 60)
    expected = 0.995**60 * purse.potential[0] - first
    assert purse.total(0, "approach", 0.995) == pytest.approx(expected, abs=1e-6)


def test_it_holds_over_a_change_of_weights_too():
    rng = np.random.default_rng(5)
    purse = Purse(placed(BLUE, SCOUT, 12, 20), placed(RED, SCOUT, 38, 38))
    first = purse.potential[0]
    for approach in (1.0, 0.4):
        purse.weights = replace(PLAIN, approach=approach).weights()
        for _ in range(15):
            purse.act({0: {"forward": rng.uniform(-1, 1), "turn": rng.uniform(-1, 1)}})
    assert purse.total(0, "approach", 0.995) == pytest.approx(0.995**30 * purse.potential[0] - first, abs=1e-6)


def test_at_a_true_end_the_potential_is_0_and_at_a_cut_it_is_not():
    decided, first = wander(1, 5)
    decided.battles.mechs["hp"][0, 1] = 0.001
    decided.battles.mechs["material"][0, 1] = LAVA
    decided.battles.world.material[0, 0, 36:40, 36:40] = LAVA
    decided.act()
    assert decided.battles.over[0] and ended(decided.battles)[0].all()
    assert decided.total(0, "approach", 0.995) == pytest.approx(-first, abs=1e-6)
    cut, first = wander(1, 6, length=6)
    assert cut.battles.over[0] and ended(cut.battles)[1].all()
    assert cut.battles.records["winner"][0] == NOBODY
    assert cut.total(0, "approach", 0.995) == pytest.approx(0.995**6 * cut.potential[0] - first, abs=1e-6)


def test_who_is_near_the_zone_when_time_ends_has_no_more_than_who_is_there_at_another_end():
    won, first = wander(1, 5, length=6)
    won.battles.records["score"][0, BLUE] = 0.001  # a lead, far from what it takes to win
    won.act()
    assert won.battles.over[0] and ended(won.battles)[1].all() and won.battles.records["winner"][0] == BLUE
    assert won.total(0, "approach", 0.995) == pytest.approx(-first, abs=1e-6)


# --- exploits --------------------------------------------------------------------------------------------------------


def test_pacing_in_and_out_of_the_zone_pays_nothing():
    """Ten times in and out, and back where it began: what standing there pays, and presence for the time inside."""
    there, back = {0: {"forward": 1.0}}, {0: {"forward": -1.0}}
    pacing, resting = (Purse(placed(BLUE, SCOUT, 23, 20), zone=(30, 20, 5)) for _ in range(2))
    for _ in range(10):
        pacing.act(there, 3)
        pacing.act(back, 3)
    resting.act(decisions=60)
    assert pacing.battles.mechs["tally"][0, 0].sum() >= 20  # it did enter and leave
    assert pacing.battles.mechs["x"][0, 0] == pytest.approx(23)
    discounted = [purse.total(0, "approach", 0.995) for purse in (pacing, resting)]
    assert discounted[0] == pytest.approx(discounted[1], abs=1e-5)
    assert pacing.total(0, "approach") < 0
    inside = pacing.total(0, "presence") / (0.1 * 0.25 / TO_WIN)
    assert inside == pytest.approx(sum(p[0, PARTS.index("presence")] > 0 for p in pacing.earned), abs=1e-3)


def test_retreating_and_returning_pays_nothing():
    there, back = {0: {"forward": 1.0}}, {0: {"forward": -1.0}}
    purse = Purse(placed(BLUE, SCOUT, 18, 20), zone=(32, 20, 5))
    start = purse.potential[0]
    purse.act(back, 6)
    purse.act(there, 6)
    assert purse.potential[0] == pytest.approx(start, abs=1e-4)
    assert purse.returns(0) < 0 and purse.total(0, "approach", 0.995) == pytest.approx(
        (0.995**12 - 1) * start, abs=1e-4
    )


def test_hovering_above_the_zone_holds_nothing_and_pays_nothing():
    purse = Purse(placed(BLUE, SCOUT, 20, 20, feet=7.0))
    purse.battles.mechs["vz"][0, 0] = 8.0
    purse.act({0: {"vertical": 1.0}}, 3)
    assert purse.battles.mechs["z"][0, 0] > 5.9
    assert purse.total(0, "presence") == purse.total(0, "score") == 0


def test_firing_pays_nothing():
    purse = Purse(placed(BLUE, HEAVY, 5, 5, yaw=np.pi / 4), placed(RED, SCOUT, 5, 35))
    happened = purse.act({0: {"primary": True, "secondary": True, "tertiary": True, "special": True}}, 30)
    assert named(happened, "kinetic_fire") and named(happened, "smoke_launch")
    assert [purse.total(0, part) for part in PARTS if part != "approach"] == [0] * 8


def test_friendly_fire_costs_and_costs_more_than_the_same_on_an_enemy_pays():
    def wall(material):
        material[0:6, 18:23, 17:19] = SOLID

    # The gauss shell bursts at the wall beside a friend, and next to nobody else.
    purse = Purse(placed(BLUE, HEAVY, 10, 20), placed(BLUE, SCOUT, 16.2, 21.5), placed(RED, SCOUT, 38, 38), build=wall)
    happened = purse.act({0: {"tertiary": True}}, 3)
    assert named(happened, "explosion") and purse.battles.mechs["friendly"][0, 0] > 0
    lost = 60 - purse.battles.mechs["hp"][0, 1]
    assert purse.total(0, "friendly") == pytest.approx(-0.4 * lost / 100)
    assert purse.total(0, "damage") == purse.total(0, "kill") == 0
    assert PLAIN.friendly_damage > PLAIN.damage and PLAIN.friendly_kill > PLAIN.kill


def test_killing_a_friend_or_oneself_costs():
    def wall(material):
        material[0:6, 18:23, 17:19] = SOLID

    purse = Purse(placed(BLUE, HEAVY, 10, 20), placed(BLUE, SCOUT, 16.2, 21.5), placed(RED, SCOUT, 38, 38), build=wall)
    purse.battles.mechs["hp"][0, 1] = 1
    happened = purse.act({0: {"tertiary": True}}, 3)
    assert named(happened, "friendly_kill")
    assert purse.total(0, "friendly") == pytest.approx(-0.6 - 0.4 / 100)
    assert purse.total(0, "kill") == 0 and purse.returns(0) < 0


def test_painting_pays_once_for_the_kill_and_never_for_the_hits():
    """A painter whose target is shot to pieces by another: one assist, less than the kill, whatever the hits."""
    purse = Purse(placed(BLUE, LIGHT, 12, 24, yaw=-0.6), placed(BLUE, MEDIUM, 10, 20), placed(RED, HEAVY, 16, 21))
    happened = []
    for _ in range(80):
        hot = purse.battles.mechs["heat"][0, 1] > 70
        happened += purse.act(
            {0: {"tertiary": True, "target": 2}, 1: {"primary": not hot, "tertiary": not hot, "vent": hot, "target": 2}}
        )
        if purse.battles.over[0]:
            break
    hits = len(named(happened, "laser_hit")) + len(named(happened, "projectile_hit"))
    assert hits > 10 and len(named(happened, "kill")) == 1 and len(named(happened, "paint")) > 1
    assert purse.total(0, "assist") == pytest.approx(0.1)
    assert purse.total(0, "damage") == purse.total(0, "kill") == 0
    assert purse.total(1, "kill") == pytest.approx(0.2) and purse.total(1, "assist") == 0


def test_helpers_of_one_kill_share_one_assist():
    purse = Purse(*(placed(BLUE, MEDIUM, 10, 12 + 4 * n) for n in range(4)), placed(RED, MEDIUM, 15, 18))
    purse.battles.records["ledger"][0, 0:3, 4] = 40  # each took a quarter and more of its 150 HP off it
    purse.battles.mechs["hp"][0, 4] = 5
    happened = purse.act({3: {"primary": True, "target": 4}})
    assert len(named(happened, "kill")) == 1 and len(named(happened, "assist")) == 3
    assert [purse.total(i, "assist") for i in range(4)] == pytest.approx([0.1 / 3] * 3 + [0])


def test_dying_to_end_it_costs_more_than_staying():
    """Two that stand in lava while their team loses; one has the HP to see the end."""

    def lava(material):
        material[0, 0:8, 0:8] = LAVA

    mechs = [placed(BLUE, MEDIUM, 4, 4), placed(BLUE, MEDIUM, 12, 4), placed(RED, MEDIUM, 20, 20)]
    quitter, stayer = (Purse(*mechs, build=lava) for _ in range(2))
    quitter.battles.mechs["hp"][0, 0] = 3
    for purse in (quitter, stayer):
        while not purse.battles.over[0]:
            purse.act()
    assert not quitter.battles.mechs["alive"][0, 0] and stayer.battles.mechs["alive"][0, 0]
    # There is no way out of the team's loss.
    assert quitter.total(0, "score") == pytest.approx(stayer.total(0, "score"), abs=1e-5)
    assert quitter.total(0, "outcome") == stayer.total(0, "outcome") == -1
    assert quitter.returns(0, 0.995) < stayer.returns(0, 0.995) - 0.19
    death = next(t for t, parts in enumerate(quitter.earned) if parts[0, PARTS.index("death")] < 0)
    assert quitter.earned[death][0, PARTS.index("approach")] < 0  # the potential is lost, not cashed
    assert not np.array(quitter.earned)[death + 1 :, 0, : PARTS.index("score")].any()


def test_letting_the_enemy_in_to_contest_pays_no_more_than_holding_alone():
    alone = Purse(placed(BLUE, MEDIUM, 20, 20), placed(RED, SCOUT, 38, 38))
    shared = Purse(placed(BLUE, MEDIUM, 20, 20), placed(RED, SCOUT, 22, 22))
    alone.act()
    shared.act()
    assert shared.total(0, "score") < alone.total(0, "score")
