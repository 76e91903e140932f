"""The scripted players: five levels, from one that hardly shoots to one that leads, kites, flanks and focuses.

A player decides for one mech at a time from what that mech may know; tactics.py says how, the levels how much of it.
Random numbers are drawn from the battle's seed by who needs them, when and what for, so that the same battle is played
the same way in any batch and on any number of threads.
"""

from math import pi
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.echelon.rules.battle import VENT, Battle, Record, draw, tick_key
from protege.games.echelon.rules.events import numbered
from protege.games.echelon.rules.sim import Actions, Battles, Flags
from protege.games.echelon.rules.weapons import has_bit
from protege.games.echelon.task import tactics
from protege.games.echelon.task.tactics import Level
from protege.games.echelon.world.mechs import NOBODY, NOT_CARRIED, Records
from protege.games.echelon.world.portable_math import PLAYERS, angle_of, sin_cos, wrap_angle
from protege.games.echelon.world.voxels import World
from protege.kernels import kernel
from protege.seeds import STREAM_STEP, random_bits

LEVELS: Final = {
    level.name: level
    for level in (
        Level("trivial", 45.0, 1.0, 0.3),
        Level("easy", 20.0, 0.5, 0.6),
        Level("medium"),
        Level("hard", skilled=True),
        Level(
            "expert", skilled=True, worth_joined=1.5, flanks=True, by_radar=True, blinds=True, leads=True,
            counters=True,
            # Beyond the other's reach where the own one is longer, close where it is not.
            distances=((9.5, 9.5, 9.5, 9.5), (4.0, 4.0, 6.5, 3.5), (9.5, 9.5, 8.0, 7.0), (13.0, 13.0, 15.0, 15.0)),
        ),
    )
}  # fmt: skip

# What a draw is for, and for how many decisions it holds.
FOR_TRIGGER, FOR_AIM, FOR_SIDE, FOR_ANYTHING = numbered(4)
AIM_HOLDS, SIDE_HOLDS = 4, 5

# Radians off the line to the target when a decision ends, and when it begins, at which a skilled player fires guns.
ON_LINE, NEARLY_ON_LINE = 0.12, 0.35


@kernel
def uniform(seed: np.uint64, mech: Record, purpose: int, moment: int, number: int) -> float:
    """A number in [0, 1) that depends on the battle, the mech's place in its team, the use and the time alone."""
    stream = random_bits(random_bits(seed) + STREAM_STEP * np.uint64(PLAYERS + 1))
    team = random_bits(stream + STREAM_STEP * np.uint64(mech.team + 1))
    return draw(tick_key(team, moment), purpose, mech.rank, number)


@kernel
def steer(battle: Battle, mech: Record, skill: Record, off: float, x: float, y: float, move: npt.NDArray[Any]) -> float:
    """Turn by the angle `off` and go along (x, y), as far as the controls allow; what is left of the angle."""
    rules, rate = battle.rules, battle.rules.chassis[mech.kind].yaw_rate
    most = rate * (rules.dt * rules.ticks_per_decision)
    turn = min(max(off / most if skill.skilled else off / (pi / 3.0), -1.0), 1.0)
    sine, cosine = sin_cos(mech.yaw + 0.5 * turn * most)  # it turns while it goes: half of it, on average
    move[0], move[1] = x * cosine + y * sine, y * cosine - x * sine
    move[3] = turn
    return off - float(turn * most)


@kernel
def decide_one(battle: Battle, world: World, b: int, i: int, mind: Record, skill: Record, actions: Actions) -> None:
    mech, seed, now = battle.mechs[i], world.seed[b], battle.decision
    tactics.gets_on(battle, mech, mind)
    target = tactics.choose_target(battle, mech, mind, skill)
    mind.target, mind.known_for = target, mind.known_for + 1 if target == mind.target else 0
    if mind.known_for < skill.reaction:
        target = NOBODY
    side = 1.0 if uniform(seed, mech, FOR_SIDE, now // SIDE_HOLDS, 0) < 0.5 else -1.0
    fights = tactics.can_fight(battle, world, b, mech, target, skill)
    x, y = tactics.go(battle, world, b, i, target, fights, skill, side)
    if mind.loose > tactics.ASIDE:
        x, y = -x, -y
    elif mind.loose > 0:
        x, y = -side * y, side * x
    face_x, face_y, at_nobody = x, y, False  # it looks where it goes, or at a target
    if target != NOBODY and tactics.near(mech, battle.mechs[target], tactics.LOOK):
        face_x, face_y, at_nobody = tactics.lead(battle, mech, target, skill)
    off = 0.0
    if face_x * face_x + face_y * face_y > 0.01:
        error = (2.0 * uniform(seed, mech, FOR_AIM, now // AIM_HOLDS, 0) - 1.0) * skill.aim_error
        off = wrap_angle(angle_of(face_y, face_x) + error - mech.yaw)
    left = steer(battle, mech, skill, off, x, y, actions.move[b, i])
    if mind.loose > 0:
        actions.move[b, i, 2] = 1.0
    actions.ewar[b, i] = tactics.ewar_mode(battle, mech, target, skill)
    actions.target[b, i] = NOBODY if at_nobody else target
    pressed = actions.buttons[b, i]
    if skill.skilled:
        on_line = fights and abs(left) < ON_LINE and abs(off) < NEARLY_ON_LINE
        tactics.press_with_care(battle, mech, target, on_line, skill, pressed)
    else:
        fires = uniform(seed, mech, FOR_TRIGGER, now, 0) < skill.fire_probability
        tactics.press_simply(battle, mech, target, fires, pressed)
    if skill.worth_joined > 0.0 and target != NOBODY:
        actions.message[b, i, 0] = (target + 1.0) / tactics.WORD


@kernel
def do_nothing(actions: Actions, b: int, i: int) -> None:
    actions.move[b, i, :] = 0.0
    actions.buttons[b, i, :] = 0
    actions.message[b, i, :] = 0.0
    actions.order[b, i, :] = 0
    actions.ewar[b, i], actions.target[b, i] = 0, NOBODY


@kernel
def decide(
    records: Records, world: World, minds: Records, skill: Records, mechs: Flags, out: Actions, first: int, last: int
) -> None:
    """Write what these mechs of battles first..last-1 do into their rows of the actions."""
    for b in range(first, last):
        battle = records[b]
        for i in range(battle.count):
            if not mechs[b, i]:
                continue
            mech, mind = battle.mechs[i], minds[b, i]
            if battle.decision == 0:
                mind.target, mind.known_for, mind.stuck, mind.loose = NOBODY, 0, 0, 0
                mind.x, mind.y = mech.x, mech.y
            do_nothing(out, b, i)
            if mech.alive and not battle.over:
                decide_one(battle, world, b, i, mind, skill[0], out)


class Teacher:
    """A scripted player of one level, for any mechs of any batch of battles."""

    def __init__(self, level: str = "medium"):
        if level not in LEVELS:
            raise ProtegeError(f"no scripted player is called {level!r}; there are {', '.join(LEVELS)}")
        self.level = LEVELS[level]
        self._skill = self.level.record()
        self._minds: WeakKeyDictionary[Battles, Records] = WeakKeyDictionary()

    def minds(self, battles: Battles) -> Records:
        """(battles, mechs) MIND: what it keeps in mind between decisions; begins anew with each battle by itself."""
        if battles not in self._minds:
            self._minds[battles] = np.zeros((battles.count, battles.mech_count), tactics.MIND)
        return self._minds[battles]

    def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None:
        battles.share_out(decide, battles.records, battles.world, self.minds(battles), self._skill, mechs, actions)


@kernel
def known_enemy(battle: Battle, mech: Record, number: int) -> int:
    """The enemy on a mech's sensors of this number, counted from 0; NOBODY beyond the last."""
    for j in range(battle.count):
        if has_bit(mech.knows, j):
            if number == 0:
                return j
            number -= 1
    return NOBODY


@kernel
def decide_at_random(records: Records, world: World, mechs: Flags, actions: Actions, first: int, last: int) -> None:
    """The same, with anything that is legal."""
    for b in range(first, last):
        battle = records[b]
        for i in range(battle.count):
            if not mechs[b, i]:
                continue
            do_nothing(actions, b, i)
            mech, seed, now = battle.mechs[i], world.seed[b], battle.decision
            for axis in range(4):
                actions.move[b, i, axis] = 2.0 * uniform(seed, mech, FOR_ANYTHING, now, axis) - 1.0
            actions.buttons[b, i, VENT] = uniform(seed, mech, FOR_ANYTHING, now, 4) < 0.5
            triggers = battle.rules.trigger[mech.kind]
            for weapon in range(len(triggers)):
                button = triggers[weapon]
                if button != NOT_CARRIED:
                    actions.buttons[b, i, button] = uniform(seed, mech, FOR_ANYTHING, now, 5 + button) < 0.5
            if battle.rules.chassis[mech.kind].has_ewar:
                actions.ewar[b, i] = int(3.0 * uniform(seed, mech, FOR_ANYTHING, now, 9))
            known = 0
            while known_enemy(battle, mech, known) != NOBODY:
                known += 1
            drawn = int((known + 1.0) * uniform(seed, mech, FOR_ANYTHING, now, 10))
            actions.target[b, i] = known_enemy(battle, mech, drawn)


class RandomPlayer:
    """Uniform over what is legal: what a player that knows nothing comes to."""

    def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None:
        battles.share_out(decide_at_random, battles.records, battles.world, mechs, actions)
