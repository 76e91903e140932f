"""Which actions can have an effect in the next decision, by class and state.

What is marked illegal changes nothing if it is asked for; what is legal may still find no target.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.rules.battle import COUNTERING, JAMMING, VENT, Battle, Record
from protege.games.echelon.task import features as at
from protege.games.echelon.world.mechs import HAZARD_HEAT, NOBODY
from protege.kernels import kernel

Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int16]

COOLEST: Final = float(-HAZARD_HEAT.min())  # what ground can take off a mech's heat, per second


@kernel
def stays_shut(battle: Battle, mech: Record) -> bool:
    """Whether a mech is sure to be shut down during the whole next decision."""
    rules, chassis = battle.rules, battle.rules.chassis[mech.kind]
    cooling = (chassis.dissipation + COOLEST) * rules.dt * rules.ticks_per_decision
    return bool(mech.shut and mech.heat - cooling > chassis.heat_capacity)


@kernel
def mark_controls(battle: Battle, mech: Record, legal: Flags) -> None:
    """Movement, buttons and electronic warfare: what can have an effect within the next decision."""
    rules, chassis = battle.rules, battle.rules.chassis[mech.kind]
    if stays_shut(battle, mech):
        return
    legal[at.LEGAL_BUTTONS + VENT] = True
    if chassis.has_ewar:
        legal[at.LEGAL_EWAR + JAMMING] = legal[at.LEGAL_EWAR + COUNTERING] = True
    if mech.fallen > rules.ticks_per_decision:
        return
    legal[at.LEGAL_MOVE] = legal[at.LEGAL_MOVE + 1] = legal[at.LEGAL_MOVE + 3] = True
    legal[at.LEGAL_MOVE + 2] = chassis.jet > 0.0
    for weapon in range(rules.trigger.shape[1]):
        button = rules.trigger[mech.kind, weapon]
        if button >= 0 and mech.wait[battle.rules.weapons[weapon].timer] <= rules.ticks_per_decision:
            legal[at.LEGAL_BUTTONS + button] = True


@kernel
def mark_choices(battle: Battle, i: int, friends: Indices, enemies: Indices, legal: Flags) -> None:
    """Targets by slot, and orders from commanders to those they see."""
    for n in range(len(enemies)):
        legal[at.LEGAL_TARGET + n] = enemies[n] != NOBODY
    if not at.GIVES_ORDERS[battle.mechs[i].suite]:
        return
    orders = at.LEGAL_TARGET + len(enemies) + 1
    for n in range(len(friends)):
        if friends[n] != NOBODY and battle.mechs[friends[n]].leader == i:
            legal[orders : orders + at.ORDER_KINDS] = True
            legal[orders + at.ORDER_KINDS + n] = True


@kernel
def mark_nothing(enemies: int, legal: Flags) -> None:
    """Only what does nothing: no warfare, no target, no order."""
    legal[:] = False
    orders = at.LEGAL_TARGET + enemies + 1
    legal[at.LEGAL_EWAR] = legal[orders - 1] = legal[orders] = True
