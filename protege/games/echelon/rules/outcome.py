"""The zone, the score and the end of a battle, once per decision."""

from math import sqrt

import numpy as np
import numpy.typing as npt

from protege.games.echelon.rules import events
from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_SCORE, BY_TIME, Battle
from protege.games.echelon.world.mechs import NOBODY
from protege.kernels import kernel

Zone = npt.NDArray[np.float64]  # x, y, radius


@kernel
def hold_zone(battle: Battle, zone: Zone) -> None:
    """Who is in the zone, what they weigh, and what that scores."""
    rules = battle.rules
    battle.tonnage[0] = battle.tonnage[1] = 0.0
    for i in range(battle.count):
        mech = battle.mechs[i]
        dx, dy, feet = mech.x - zone[0], mech.y - zone[1], mech.z - mech.half_height
        inside = mech.alive and feet <= rules.zone_height and sqrt(dx * dx + dy * dy) < zone[2]
        if inside:
            battle.tonnage[mech.team] += rules.chassis[mech.kind].tonnage
        if inside != mech.inside:
            mech.inside = inside
            kind = events.ZONE_ENTER if inside else events.ZONE_LEAVE
            events.emit_at(battle, kind, i, NOBODY, events.NO_WEAPON, 0.0, mech)
    for team in range(2):
        own, other = battle.tonnage[team], battle.tonnage[1 - team]
        fraction = 1.0 if own > 0.0 else 0.0
        if own > 0.0 and other > 0.0:
            margin = max((own - other) / (own + other), 0.0)
            fraction = rules.contested_floor + (1.0 - rules.contested_floor) * margin
        battle.share[team] = fraction
        battle.score[team] += fraction * (rules.dt * rules.ticks_per_decision)


@kernel
def score_to_win(battle: Battle) -> float:
    """Half of the battle's seconds, or whatever fraction the rules say."""
    rules = battle.rules
    return float(rules.score_fraction * (battle.length * (rules.dt * rules.ticks_per_decision)))


@kernel
def leader(lead: float, tolerance: float) -> int:
    """Blue if it leads, red if it trails, nobody if the two are within a tolerance."""
    if lead > tolerance:
        return 0
    return 1 if lead < -tolerance else NOBODY


@kernel
def winner_at_time(battle: Battle) -> int:
    """Who wins when time is up: by score, then HP; or, in the suite's rules, by presence, losses and damage."""
    hp = dealt = 0.0  # blue's less red's; amounts are multiples of 1/1024, so that sums are exact
    for i in range(battle.count):
        mech = battle.mechs[i]
        sign = 1.0 if mech.team == 0 else -1.0
        hp, dealt = hp + sign * mech.hp, dealt + sign * mech.dealt
    if not battle.rules.suite_tiebreak:
        winner = leader(battle.score[0] - battle.score[1], 0.0)
        return winner if winner != NOBODY else leader(hp, battle.rules.hp_tolerance)
    if (battle.tonnage[0] > 0.0) != (battle.tonnage[1] > 0.0):
        return leader(battle.tonnage[0] - battle.tonnage[1], 0.0)
    fewer_lost = battle.members[1] - battle.living[1] - (battle.members[0] - battle.living[0])
    return leader(float(fewer_lost) if fewer_lost != 0 else dealt, 0.0)


@kernel
def decide_outcome(battle: Battle) -> None:
    """End the battle if a team is gone, the score is reached or time is up, in this order."""
    gone_blue = battle.members[0] > 0 and battle.living[0] == 0
    gone_red = battle.members[1] > 0 and battle.living[1] == 0
    if gone_blue or gone_red:
        battle.ending, battle.winner = BY_ELIMINATION, leader(float(battle.living[0] - battle.living[1]), 0.0)
    elif battle.rules.score_ends and max(battle.score[0], battle.score[1]) >= score_to_win(battle):
        battle.ending, battle.winner = BY_SCORE, leader(battle.score[0] - battle.score[1], 0.0)
    elif battle.decision >= battle.length:
        battle.ending, battle.winner = BY_TIME, winner_at_time(battle)
    battle.over = battle.ending != 0
