"""RAM -> the 195 values an agent sees, and their names.

The numbers are those of the wire format: computed in double precision, rounded once to 32 bits, so that the Lua client
and this module agree bit for bit. Two places differ from the published client: a lane exactly opposite on a closed tube
is always +8 lanes away (there the sign was random), and nothing is ever outside [-1, 1].
"""

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.ram import Row, get
from protege.kernels import kernel

Values = npt.NDArray[np.float32]  # (195,)
LaneScale = tuple[int, int, int]

VALUES: Final = 195

# Where each value is; a singular name with several values behind it is the index of the first.
GAME_STATE, GAME_MODE, COUNTDOWN, LIVES, P1_LEVEL = range(5)
PLAYER_LANE, PLAYER_ALIVE, PLAYER_EDGE, PLAYER_DEPTH, ZAP_USES, ZAP_TIMER, SHOTS_LEFT = range(5, 12)
SHOT_DEPTH, SHOT_LANE = 12, 20  # of each of the player's 8 shots
LEVEL_NUMBER, LEVEL_OPEN, LEVEL_SHAPE = range(28, 31)
SPIKE, ANGLE = 31, 47  # of each of the 16 lanes
ACTIVE, ROOM = 63, 68  # of each of the 5 types
IN_TUBE, ON_RIM, PENDING, PULSAR_WAIT, PULSE_BEAT, PULSE_PHASE, FLIPPER_SCRIPT, FUSE_PROBABILITY = range(73, 81)
SPEED = 81  # of each of the 5 types
ENEMY_SLOT = 86  # of each of the 7 enemies, side by side:
KIND, INCREASING, BETWEEN, AWAY, MAY_SHOOT, CARGO = range(6)
SLOT_VALUES: Final = 6
ENEMY_LANE, ENEMY_DEPTH, RIM_LANE = 128, 135, 142  # of each of the 7 enemies
ENEMY_SHOT_DEPTH, ENEMY_SHOT_LANE = 149, 153  # of each of their 4 shots
PULSAR_DEPTH, PULSAR_LANE, TOP_RAIL_LANE = 157, 164, 171  # of each of the 7 enemies
DANGER_OWN, DANGER_BELOW, DANGER_ABOVE = range(178, 181)
LANE_CHANGE, DEPTH_CHANGE = 181, 188  # of each of the 7 enemies

# The same as slices.
SHOT_DEPTHS, SHOT_LANES = slice(SHOT_DEPTH, SHOT_LANE), slice(SHOT_LANE, LEVEL_NUMBER)
SPIKES, ANGLES = slice(SPIKE, ANGLE), slice(ANGLE, ACTIVE)
ENEMIES_OVERALL: Final = slice(ACTIVE, ENEMY_SLOT)  # counts, timers, speeds
ENEMY_SLOTS, ENEMY_LANES = slice(ENEMY_SLOT, ENEMY_LANE), slice(ENEMY_LANE, ENEMY_DEPTH)
ENEMY_DEPTHS, RIM_LANES = slice(ENEMY_DEPTH, RIM_LANE), slice(RIM_LANE, ENEMY_SHOT_DEPTH)
ENEMY_SHOT_DEPTHS, ENEMY_SHOT_LANES = slice(ENEMY_SHOT_DEPTH, ENEMY_SHOT_LANE), slice(ENEMY_SHOT_LANE, PULSAR_DEPTH)
PULSAR_LANES, TOP_RAIL_LANES = slice(PULSAR_LANE, TOP_RAIL_LANE), slice(TOP_RAIL_LANE, DANGER_OWN)
DANGER: Final = slice(DANGER_OWN, LANE_CHANGE)
LANE_MOTION, DEPTH_MOTION = slice(LANE_CHANGE, DEPTH_CHANGE), slice(DEPTH_CHANGE, VALUES)

# Counters a person at the machine cannot see.
HIDDEN: Final = (*range(ROOM, PULSE_BEAT), *range(FLIPPER_SCRIPT, ENEMY_SLOT))
# A value times its scale is what the machine's memory holds.
STATE_SCALE, LIVES_SCALE, LEVEL_SCALE, ZAP_SCALE = 36, 6, 98, 19
BYTE_SCALE, LANE_SCALE, SHOT_SCALE = 255, 15, 256
KIND_SCALE: Final = 7


def _values() -> list[tuple[str, int]]:
    """Name and scale of each value, in order."""
    enemies, shots, enemy_shots = range(ram.ENEMY_COUNT), range(ram.PSHOT_COUNT), range(ram.ESHOT_COUNT)
    lanes = range(ram.LANE_COUNT)
    kinds = ("flipper", "pulsar", "tanker", "spiker", "fuseball")
    fields = ("type", "segment_increasing", "between_segments", "moving_away", "can_shoot", "split_kind")
    return [
        ("game_state", STATE_SCALE), ("game_mode", BYTE_SCALE), ("countdown_timer", BYTE_SCALE),
        ("p1_lives", LIVES_SCALE), ("p1_level", LEVEL_SCALE),
        ("player_position", LANE_SCALE), ("player_alive", 1), ("player_state_low_nibble", 15),
        ("player_depth", BYTE_SCALE), ("superzapper_uses", 2), ("superzapper_active", ZAP_SCALE),
        ("player_shots_remaining", 8),
        *((f"player_shot_{s}_depth", SHOT_SCALE) for s in shots),
        *((f"player_shot_{s}_rel_segment", LANE_SCALE) for s in shots),
        ("level_number", LEVEL_SCALE), ("level_is_open", 1), ("level_shape", 15),
        *((f"spike_height_{lane}", BYTE_SCALE) for lane in lanes),
        *((f"tube_angle_{lane}", 15) for lane in lanes),
        *((f"active_{kind}s", 7) for kind in kinds),
        *((f"spawn_slots_{kind}s", 7) for kind in kinds),
        ("enemies_in_tube", 7), ("enemies_on_top", 7), ("enemies_pending", 63), ("pulsar_flip_rate", 40),
        ("pulse_beat", 12), ("pulsing_phase", BYTE_SCALE), ("flipper_move_program", 135),
        ("fuseball_move_probability", BYTE_SCALE),
        *((f"speed_{kind}", 2560) for kind in kinds),
        *((f"enemy_{s}_{field}", scale) for s in enemies for field, scale in zip(fields, (KIND_SCALE, 1, 1, 1, 1, 3))),
        *((f"enemy_{s}_rel_segment", LANE_SCALE) for s in enemies),
        *((f"enemy_{s}_depth", BYTE_SCALE) for s in enemies),
        *((f"enemy_{s}_rim_rel_segment", LANE_SCALE) for s in enemies),
        *((f"enemy_shot_{s}_depth", SHOT_SCALE) for s in enemy_shots),
        *((f"enemy_shot_{s}_rel_segment", LANE_SCALE) for s in enemy_shots),
        *((f"pulsar_{s}_depth", BYTE_SCALE) for s in enemies),
        *((f"pulsar_{s}_rel_segment", LANE_SCALE) for s in enemies),
        *((f"top_rail_{s}_rel_segment", LANE_SCALE) for s in enemies),
        *((f"danger_{lane}", BYTE_SCALE) for lane in ("own_lane", "lane_minus_1", "lane_plus_1")),
        *((f"enemy_{s}_delta_segment", 8) for s in enemies),
        *((f"enemy_{s}_delta_depth", 128) for s in enemies),
    ]  # fmt: skip


NAMES: Final = tuple(name for name, _ in _values())
SCALES: Final = np.array([scale for _, scale in _values()])
# Values that can be negative: places relative to the player (-1 also stands for nobody), the pulse's step, changes.
SIGNED: Final = frozenset(i for i, name in enumerate(NAMES) if re.search("rel_segment|pulse_beat|speed|delta", name))
ZOOM_ABOVE: Final = 0.8  # the game state above which the player is in the zoom ($20 of $24)
PULSE_BELOW: Final = 0.5  # the pulse phase is a signed byte: below a half of 255 it is not negative


def decode(values: npt.NDArray[np.floating[Any]], which: int | slice) -> npt.NDArray[np.int64]:
    """What the machine holds where some of the values (..., 195) come from, as whole numbers."""
    return np.rint(values[..., which] * SCALES[which]).astype(np.int64)


# Byte -> value, for every way a byte is scaled; looked up because a division costs more than a load.
_BYTES = np.arange(256)


def _clamped(most: int) -> npt.NDArray[np.float32]:
    return (np.minimum(_BYTES, most) / most).astype(np.float32)


_OF_255: Final = (_BYTES / 255).astype(np.float32)
_OF_256: Final = (_BYTES / 256).astype(np.float32)
_HEIGHT: Final = np.where(_BYTES == 0, 0, (255 - _BYTES) / 255).astype(np.float32)
_BEAT: Final = (np.clip(np.where(_BYTES < 128, _BYTES, _BYTES - 256), -12, 12) / 12).astype(np.float32)
_OF_1, _OF_2, _OF_3, _OF_6, _OF_7 = _clamped(1), _clamped(2), _clamped(3), _clamped(6), _clamped(7)
_OF_15, _OF_19, _OF_36, _OF_40 = _clamped(15), _clamped(19), _clamped(36), _clamped(40)
_OF_63, _OF_98, _OF_135 = _clamped(63), _clamped(98), _clamped(135)
_TIP: Final = np.where(_BYTES == 0, 255, _BYTES)  # where a spike ends, 255 where there is none
_SHOTS_REMAINING: Final = (np.maximum(8 - _BYTES, 0) / 8).astype(np.float32)
_LANES: Final = (np.arange(-15, 16) / 15).astype(np.float32)  # by relative lane + 15
_LANE_CHANGE: Final = (np.clip(np.arange(-15, 16), -8, 8) / 8).astype(np.float32)  # by change + 15
_DEPTH_CHANGE: Final = (np.clip(np.arange(-255, 256), -128, 128) / 128).astype(np.float32)  # by change + 255
_ABSENT: Final = np.float32(-1)
_ZERO: Final = np.float32(0)


@kernel
def relative_lane(row: Row, lane: int) -> int:
    """How many lanes from the player's to this one: the short way round on closed tubes, opposite counting as +8."""
    d = (lane & 15) - (get(row, ram.PLAYER_LANE) & 15)
    if row[ram.OPEN] == 0:
        d = (d + 7 & 15) - 7
    return d


@kernel
def flipping_lane(row: Row, slot: int, relative: int) -> float:
    """The relative lane of an enemy that is turning over, with the part of the way it has come."""
    lane = get(row, ram.ENEMY_LANE + slot) & 15
    angle = get(row, ram.ENEMY_EDGE + slot) & 15
    low = get(row, ram.TUBE_ANGLE + (lane - 1 & 15)) + 8
    high = get(row, ram.TUBE_ANGLE + lane)
    increasing = row[ram.ENEMY_TYPE + slot] & ram.INCREASING != 0
    travelled, total = (low - angle if increasing else angle - high) & 15, low - high & 15
    progress = 0.0 if total == 0 else min(travelled / total, 1.0)
    place = relative + progress - 1.0 if increasing else relative - progress
    if row[ram.OPEN] == 0:
        place -= 16.0 * ((place > 8.0) - (place < -8.0))
    return place


@kernel
def is_flipping(row: Row, slot: int) -> bool:
    """Between lanes and of a type that turns over (fuseballs leap)."""
    type_byte = get(row, ram.ENEMY_TYPE + slot)
    return type_byte & ram.BETWEEN_LANES != 0 and type_byte & ram.TYPE_BITS != ram.FUSEBALL


@kernel
def observe_level(row: Row, out: Values) -> None:
    """The values that stay the same from one frame to the next while the level and the life go on."""
    level = get(row, ram.LEVEL_INDEX)
    out[P1_LEVEL] = _OF_98[row[ram.P1_LEVEL]]
    out[LEVEL_NUMBER] = _OF_98[level]
    out[LEVEL_OPEN] = _OF_1[1 if row[ram.OPEN] != 0 else 0]
    out[LEVEL_SHAPE] = _OF_15[level & 15]
    for lane in range(ram.LANE_COUNT):
        out[ANGLE + lane] = _OF_15[row[ram.TUBE_ANGLE + lane]]
    out[PULSAR_WAIT] = _OF_40[row[ram.PULSAR_WAIT]]
    out[FLIPPER_SCRIPT] = _OF_135[row[ram.FLIPPER_SCRIPT]]
    out[FUSE_PROBABILITY] = _OF_255[row[ram.FUSE_THRESHOLD]]
    for kind in range(ram.TYPE_KINDS):
        word = get(row, ram.SPEED_HIGH + kind) << 8 | get(row, ram.SPEED_LOW + kind)
        if word >= 0x8000:
            word -= 0x10000
        out[SPEED + kind] = np.float32(max(-2560, min(2560, word)) / 2560.0)


@kernel
def _observe_enemy(row: Row, slot: int, moving: bool, lane_of: LaneScale, out: Values) -> None:
    depth = get(row, ram.ENEMY_DEPTH + slot)
    type_byte, info = get(row, ram.ENEMY_TYPE + slot), get(row, ram.ENEMY_INFO + slot)
    lane = get(row, ram.ENEMY_LANE + slot) & 15
    before, lane_before = get(row, ram.PREVIOUS_DEPTH + slot), get(row, ram.PREVIOUS_LANE + slot) & 15
    kind_before = get(row, ram.PREVIOUS_TYPE + slot) & ram.TYPE_BITS
    kind = type_byte & ram.TYPE_BITS
    base = ENEMY_SLOT + SLOT_VALUES * slot
    index = _lane_index(lane_of, lane)
    place, deep = _LANES[index], _OF_255[depth]
    if type_byte & ram.BETWEEN_LANES != 0 and kind != ram.FUSEBALL:
        place = np.float32(max(-15.0, min(15.0, flipping_lane(row, slot, index - 15))) / 15.0)
    out[base + KIND] = _OF_7[kind]
    out[base + INCREASING] = np.float32(type_byte >> 6 & 1)
    out[base + BETWEEN] = np.float32(type_byte >> 7)
    out[base + AWAY] = np.float32(info >> 7)
    out[base + MAY_SHOOT] = np.float32(info >> 6 & 1)
    out[base + CARGO] = _OF_3[info & ram.CARGO_BITS]
    out[ENEMY_LANE + slot] = place
    out[ENEMY_DEPTH + slot] = deep
    out[RIM_LANE + slot] = place if depth == ram.RIM else _ABSENT
    pulsar = kind == ram.PULSAR
    out[PULSAR_DEPTH + slot] = deep if pulsar else _ZERO
    out[PULSAR_LANE + slot] = place if pulsar else _ABSENT
    out[TOP_RAIL_LANE + slot] = place if depth <= ram.RIM and kind <= ram.PULSAR else _ABSENT
    if moving and before != 0 and kind_before == kind:
        change = lane - lane_before
        if lane_of[1] == 15:  # closed
            change -= 16 * ((change > 8) - (change < -8))
        out[LANE_CHANGE + slot] = _LANE_CHANGE[change + 15]
        out[DEPTH_CHANGE + slot] = _DEPTH_CHANGE[depth - before + 255]
    else:
        out[LANE_CHANGE + slot] = out[DEPTH_CHANGE + slot] = _ZERO


@kernel
def _observe_no_enemy(slot: int, out: Values) -> None:
    base = ENEMY_SLOT + SLOT_VALUES * slot
    for i in range(base, base + SLOT_VALUES):
        out[i] = _ZERO
    for i in (ENEMY_DEPTH, PULSAR_DEPTH, LANE_CHANGE, DEPTH_CHANGE):
        out[i + slot] = _ZERO
    for i in (ENEMY_LANE, RIM_LANE, PULSAR_LANE, TOP_RAIL_LANE):
        out[i + slot] = _ABSENT


@kernel
def _lane_scale(row: Row) -> LaneScale:
    """Shift, mask and base that turn a lane into an index of _LANES, so that the tube is looked at once."""
    lane = get(row, ram.PLAYER_LANE) & 15
    return (7 - lane, 15, 8) if row[ram.OPEN] == 0 else (15 - lane, 31, 0)


@kernel
def _lane_index(lane_of: LaneScale, lane: int) -> int:
    shift, mask, base = lane_of
    return ((lane & 15) + shift & mask) + base


@kernel
def observe(row: Row, out: Values) -> None:
    """Write those of the 195 values that can change from frame to frame; `observe_level` writes the others."""
    is_open = row[ram.OPEN] != 0
    lane = get(row, ram.PLAYER_LANE) & 15
    lane_of = _lane_scale(row)
    out[GAME_STATE] = _OF_36[row[ram.GAME_STATE]]
    out[GAME_MODE] = _OF_255[row[ram.GAME_MODE]]
    out[COUNTDOWN] = _OF_255[row[ram.COUNTDOWN]]
    out[LIVES] = _OF_6[row[ram.LIVES]]
    out[PLAYER_LANE] = _OF_15[row[ram.PLAYER_LANE]]
    out[PLAYER_ALIVE] = np.float32(1 - (get(row, ram.PLAYER_EDGE) >> 7))
    out[PLAYER_EDGE] = _OF_15[row[ram.PLAYER_EDGE] & 15]
    out[PLAYER_DEPTH] = _OF_255[row[ram.PLAYER_DEPTH]]
    out[ZAP_USES] = _OF_2[row[ram.ZAP_USES]]
    out[ZAP_TIMER] = _OF_19[row[ram.ZAP_TIMER]]
    out[SHOTS_LEFT] = _SHOTS_REMAINING[row[ram.PLAYER_SHOTS]]
    for s in range(ram.PSHOT_COUNT):
        depth = get(row, ram.PSHOT_DEPTH + s)
        place = _LANES[_lane_index(lane_of, get(row, ram.PSHOT_LANE + s))]
        out[SHOT_DEPTH + s] = _OF_256[depth]
        out[SHOT_LANE + s] = place if depth != 0 else _ABSENT
    for i in range(ram.LANE_COUNT):
        out[SPIKE + i] = _HEIGHT[row[ram.SPIKE + i]]
    for kind in range(ram.TYPE_KINDS):
        out[ACTIVE + kind] = _OF_7[row[ram.TYPE_COUNT + kind]]
        out[ROOM + kind] = _OF_7[row[ram.TYPE_ROOM + kind]]
    out[IN_TUBE] = _OF_7[row[ram.ENEMIES_IN_TUBE]]
    out[ON_RIM] = _OF_7[row[ram.ENEMIES_ON_RIM]]
    out[PENDING] = _OF_63[row[ram.NYMPHS_LEFT]]
    out[PULSE_BEAT] = _BEAT[row[ram.PULSE_STEP]]
    out[PULSE_PHASE] = _OF_255[row[ram.PULSE_PHASE]]
    # The nearest thing in the own lane and its neighbours: spike tips first, then whoever is nearer.
    below, above = lane - 1 & 15, lane + 1 & 15
    own, minus, plus = _TIP[row[ram.SPIKE + lane]], _TIP[row[ram.SPIKE + below]], _TIP[row[ram.SPIKE + above]]
    moving = row[ram.GAME_STATE] == ram.PLAYING and row[ram.PREVIOUS_KNOWN] != 0
    for slot in range(ram.ENEMY_COUNT):
        depth = get(row, ram.ENEMY_DEPTH + slot)
        if depth == 0:
            _observe_no_enemy(slot, out)
            continue
        at = get(row, ram.ENEMY_LANE + slot) & 15
        own = min(own, depth if at == lane else 255)
        minus = min(minus, depth if at == below else 255)
        plus = min(plus, depth if at == above else 255)
        _observe_enemy(row, slot, moving, lane_of, out)
    for s in range(ram.ESHOT_COUNT):
        depth = get(row, ram.ESHOT_DEPTH + s)
        if depth == 0:
            out[ENEMY_SHOT_DEPTH + s] = _ZERO
            out[ENEMY_SHOT_LANE + s] = _ABSENT
            continue
        at = get(row, ram.ESHOT_LANE + s) & 15
        own = min(own, depth if at == lane else 255)
        minus = min(minus, depth if at == below else 255)
        plus = min(plus, depth if at == above else 255)
        out[ENEMY_SHOT_DEPTH + s] = np.float32((depth + get(row, ram.ESHOT_UNUSED + s) / 256.0) / 256.0)
        out[ENEMY_SHOT_LANE + s] = _LANES[_lane_index(lane_of, at)]
    out[DANGER_OWN] = _OF_255[own]
    out[DANGER_BELOW] = _OF_255[255 if is_open and lane == 0 else minus]
    out[DANGER_ABOVE] = _OF_255[255 if is_open and lane == 15 else plus]
