"""What a decision was worth to every mech of a battle.

Getting nearer to the zone pays by a potential, so that going to and fro adds up to nothing; the team's score and the
battle's outcome pay every member of the team, dead or alive; fighting pays little, and hurting one's own side costs.
Every weight is in `RewardConfig`; nothing pays for a shot, a hit on a painted target or a step as such.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.echelon.rules.battle import BY_TIME, Battle, Record
from protege.games.echelon.rules.events import ASSIST, FRIENDLY_KILL, KILL
from protege.games.echelon.rules.outcome import score_to_win
from protege.games.echelon.world.mechs import NOBODY, Records
from protege.kernels import kernel

PARTS: Final = ("approach", "presence", "damage", "kill", "assist", "death", "friendly", "score", "outcome")
APPROACH, PRESENCE, DAMAGE, KILLS, ASSISTS, DYING, FRIENDLY, SCORE, OUTCOME = range(len(PARTS))

Values = npt.NDArray[np.float32]
Walks = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RewardConfig:
    """Every weight. A battle decided by score is worth `score` + `outcome` to each member of the team that wins it."""

    gamma: float = 0.995  # discount of the learner's return: the potential must use the same
    approach: float = 0.5  # potential in the zone; it falls to 0 along approach_scale
    approach_scale: float = 200.0  # voxels of way
    presence: float = 0.1  # for a mech that is in the zone for as long as the score to win takes
    damage: float = 0.1  # per 100 HP taken off enemies
    kill: float = 0.2
    assist: float = 0.1  # shared by all who helped with a kill
    death: float = 0.2  # taken off
    friendly_damage: float = 0.4  # per 100 HP taken off one's own side, oneself included; taken off
    friendly_kill: float = 0.6  # taken off
    score: float = 1.0  # for the whole score to win, less the same for the other team's
    outcome_first: float = 0.25  # for a victory, and taken off for a defeat, when training begins
    outcome: float = 1.0  # the same from `settled` on
    own_fraction_first: float = 1.0  # of what a mech earns by itself, the part it keeps; the rest is the team's mean
    own_fraction: float = 0.5  # the same from `settled` on
    settled: float = 0.5  # fraction of the training after which the two have reached their last value

    def __post_init__(self) -> None:
        if not self.assist < self.kill:
            raise ProtegeError(f"helping with a kill must pay less than the kill; got {self.assist} and {self.kill}")
        if not 0.0 < self.gamma <= 1.0 or self.approach_scale <= 0.0:
            raise ProtegeError(f"gamma must be in (0, 1] and approach_scale positive; got {self}")
        for name in ("own_fraction_first", "own_fraction", "settled"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ProtegeError(f"{name} must be in [0, 1]; got {getattr(self, name)}")

    def weights(self, progress: float = 1.0) -> Records:
        """As the kernels take them, at this fraction of the training."""
        part = min(progress / self.settled, 1.0) if self.settled > 0.0 else 1.0
        values = dict(vars(self))
        for name in ("outcome", "own_fraction"):
            values[name] = values[f"{name}_first"] + part * (values[name] - values[f"{name}_first"])
        return np.array([tuple(values.values())], [(name, np.float64) for name in values])


# What was true of a mech when the last decision ended.
REWARD_STATE: Final = np.dtype(
    [
        ("potential", "f8"), ("dealt", "f8"), ("friendly", "f8"),
        ("kills", "i8"), ("friendly_kills", "i8"), ("assists", "i8"), ("alive", "i8"),
    ],
    align=True,
)  # fmt: skip


@kernel
def potential(battle: Battle, mech: Record, walk: float, weights: Record) -> float:
    """How good it is to be there; 0 for the dead and once a battle is decided, which a draw by time is not."""
    if not mech.alive or (battle.over and (battle.ending != BY_TIME or battle.winner != NOBODY)):
        return 0.0
    return float(weights.approach * max(1.0 - walk / weights.approach_scale, 0.0))


@kernel
def earn(
    battle: Battle, mech: Record, walk: float, weights: Record, state: Record, per_assist: float, parts: Values
) -> float:
    """What a mech that was alive earned by itself."""
    held = battle.rules.dt * battle.rules.ticks_per_decision / score_to_win(battle)
    parts[APPROACH] = weights.gamma * potential(battle, mech, walk, weights) - state.potential
    parts[PRESENCE] = weights.presence * held * mech.inside
    parts[DAMAGE] = weights.damage * (mech.dealt - state.dealt) * 0.01
    parts[KILLS] = weights.kill * (mech.tally[KILL] - state.kills)
    parts[ASSISTS] = weights.assist * (mech.tally[ASSIST] - state.assists) * per_assist
    if not mech.alive:
        parts[DYING] = -weights.death
    parts[FRIENDLY] = -weights.friendly_damage * (mech.friendly - state.friendly) * 0.01
    parts[FRIENDLY] -= weights.friendly_kill * (mech.tally[FRIENDLY_KILL] - state.friendly_kills)
    total = 0.0
    for part in range(SCORE):
        total += parts[part]
    return total


@kernel
def reward_team(
    battle: Battle, team: int, walks: Walks, weights: Record, reward_state: Records, reward: Values, parts: Any
) -> None:
    held = battle.rules.dt * battle.rules.ticks_per_decision / score_to_win(battle)
    lead = weights.score * (battle.share[team] - battle.share[1 - team]) * held
    result = 0.0
    if battle.over and battle.winner != NOBODY:
        result = weights.outcome if battle.winner == team else -weights.outcome
    kills, assists, total = 0, 0, 0.0
    for i in range(battle.count):
        mech = battle.mechs[i]
        if mech.team == team:
            kills += mech.tally[KILL] - reward_state[i].kills
            assists += mech.tally[ASSIST] - reward_state[i].assists
    per_assist = min(kills / assists, 1.0) if assists > 0 else 0.0  # the helpers of a kill divide an assist's worth
    for i in range(battle.count):
        mech = battle.mechs[i]
        if mech.team == team:
            parts[i], reward[i] = 0.0, 0.0
            if reward_state[i].alive:
                reward[i] = earn(battle, mech, walks[i], weights, reward_state[i], per_assist, parts[i])
            parts[i, SCORE], parts[i, OUTCOME] = lead, result
            total += reward[i]
    mean = total / max(battle.members[team], 1)
    for i in range(battle.count):
        if battle.mechs[i].team == team:
            reward[i] = weights.own_fraction * reward[i] + (1.0 - weights.own_fraction) * mean + lead + result


@kernel
def reset_reward_state(records: Records, walks: Walks, weights: Records, reward_state: Records, b: int) -> None:
    """Note how things stand in a battle: nothing has been earned since."""
    battle = records[b]
    for i in range(battle.count):
        mech, state = battle.mechs[i], reward_state[b, i]
        state.potential = potential(battle, mech, walks[b, i], weights[0])
        state.dealt, state.friendly, state.alive = mech.dealt, mech.friendly, mech.alive
        state.kills, state.friendly_kills = mech.tally[KILL], mech.tally[FRIENDLY_KILL]
        state.assists = mech.tally[ASSIST]


@kernel
def compute_rewards(
    records: Records, walks: Walks, weights: Records, reward_state: Records, reward: Values, parts: Values, first: int,
    last: int,
) -> None:  # fmt: skip
    """The last decision of battles first..last-1; `parts` are what the reward is made of before the team divides it."""
    for b in range(first, last):
        for team in range(2):
            reward_team(records[b], team, walks[b], weights[0], reward_state[b], reward[b], parts[b])
        reset_reward_state(records, walks, weights, reward_state, b)
