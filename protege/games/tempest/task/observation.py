"""RAM -> the 195 values an agent sees, and their names.

The numbers are those of the wire format: computed in double precision, rounded once to 32 bits, so that the Lua client
and this module agree bit for bit. Two places differ from the published client: a lane exactly opposite on a closed tube
is always +8 lanes away (there the sign was random), and nothing is ever outside [-1, 1].
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.ram import Row, get
from protege.kernels import kernel

Values = npt.NDArray[np.float32]  # (195,)
LaneScale = tuple[int, int, int]

VALUES: Final = 195

# Named slices of the vector.
GAME: Final = slice(0, 5)
PLAYER: Final = slice(5, 28)
LEVEL: Final = slice(28, 63)
ENEMIES_OVERALL: Final = slice(63, 86)
ENEMY_SLOTS: Final = slice(86, 128)  # 7 x (type, increasing, between, away, can shoot, cargo)
ENEMY_PLACES: Final = slice(128, 178)
DANGER: Final = slice(178, 181)
ENEMY_MOTION: Final = slice(181, 195)

PLAYER_LANE: Final = 5
SHOT_DEPTHS: Final = slice(12, 20)
SHOT_LANES: Final = slice(20, 28)
SPIKES: Final = slice(31, 47)
ANGLES: Final = slice(47, 63)
ENEMY_LANES: Final = slice(128, 135)
ENEMY_DEPTHS: Final = slice(135, 142)
RIM_LANES: Final = slice(142, 149)
ENEMY_SHOT_DEPTHS: Final = slice(149, 153)
ENEMY_SHOT_LANES: Final = slice(153, 157)
PULSAR_DEPTHS: Final = slice(157, 164)
PULSAR_LANES: Final = slice(164, 171)
TOP_RAIL_LANES: Final = slice(171, 178)
LANE_MOTION: Final = slice(181, 188)
DEPTH_MOTION: Final = slice(188, 195)

# Counters a person at the machine cannot see.
HIDDEN: Final = (*range(68, 77), *range(79, 86))


def _names() -> tuple[str, ...]:
    enemy = range(ram.ENEMY_COUNT)
    kinds = ("flippers", "pulsars", "tankers", "spikers", "fuseballs")
    fields = ("type", "segment_increasing", "between_segments", "moving_away", "can_shoot", "split_kind")
    return (
        *("game_state", "game_mode", "countdown_timer", "p1_lives", "p1_level"),
        *("player_position", "player_alive", "player_state_low_nibble", "player_depth"),
        *("superzapper_uses", "superzapper_active", "player_shots_remaining"),
        *(f"player_shot_{s}_depth" for s in range(ram.PSHOT_COUNT)),
        *(f"player_shot_{s}_rel_segment" for s in range(ram.PSHOT_COUNT)),
        *("level_number", "level_is_open", "level_shape"),
        *(f"spike_height_{lane}" for lane in range(ram.LANE_COUNT)),
        *(f"tube_angle_{lane}" for lane in range(ram.LANE_COUNT)),
        *(f"active_{kind}" for kind in kinds),
        *(f"spawn_slots_{kind}" for kind in kinds),
        *("enemies_in_tube", "enemies_on_top", "enemies_pending", "pulsar_flip_rate", "pulse_beat", "pulsing_phase"),
        *("flipper_move_program", "fuseball_move_probability"),
        *(f"speed_{kind[:-1]}" for kind in kinds),
        *(f"enemy_{s}_{field}" for s in enemy for field in fields),
        *(f"enemy_{s}_rel_segment" for s in enemy),
        *(f"enemy_{s}_depth" for s in enemy),
        *(f"enemy_{s}_rim_rel_segment" for s in enemy),
        *(f"enemy_shot_{s}_depth" for s in range(ram.ESHOT_COUNT)),
        *(f"enemy_shot_{s}_rel_segment" for s in range(ram.ESHOT_COUNT)),
        *(f"pulsar_{s}_depth" for s in enemy),
        *(f"pulsar_{s}_rel_segment" for s in enemy),
        *(f"top_rail_{s}_rel_segment" for s in enemy),
        *("danger_own_lane", "danger_lane_minus_1", "danger_lane_plus_1"),
        *(f"enemy_{s}_delta_segment" for s in enemy),
        *(f"enemy_{s}_delta_depth" for s in enemy),
    )


NAMES: Final = _names()

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
    if increasing:
        travelled, total = low - angle & 15, low - high & 15
    else:
        travelled, total = angle - high & 15, low - high & 15
    progress = 0.0 if total == 0 else min(travelled / total, 1.0)
    place = relative + progress - 1.0 if increasing else relative - progress
    if row[ram.OPEN] == 0:
        if place > 8.0:
            place -= 16.0
        elif place < -8.0:
            place += 16.0
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
    out[4] = _OF_98[row[ram.P1_LEVEL]]
    out[28] = _OF_98[level]
    out[29] = _OF_1[1 if row[ram.OPEN] != 0 else 0]
    out[30] = _OF_15[level & 15]
    for lane in range(ram.LANE_COUNT):
        out[47 + lane] = _OF_15[row[ram.TUBE_ANGLE + lane]]
    out[76] = _OF_40[row[ram.PULSAR_WAIT]]
    out[79] = _OF_135[row[ram.FLIPPER_SCRIPT]]
    out[80] = _OF_255[row[ram.FUSE_THRESHOLD]]
    for kind in range(ram.TYPE_KINDS):
        word = get(row, ram.SPEED_HIGH + kind) << 8 | get(row, ram.SPEED_LOW + kind)
        if word >= 0x8000:
            word -= 0x10000
        out[81 + kind] = np.float32(max(-2560, min(2560, word)) / 2560.0)


@kernel
def _observe_enemy(row: Row, slot: int, moving: bool, lane_of: LaneScale, out: Values) -> None:
    """Everything about one occupied enemy slot."""
    depth = get(row, ram.ENEMY_DEPTH + slot)
    type_byte, info = get(row, ram.ENEMY_TYPE + slot), get(row, ram.ENEMY_INFO + slot)
    lane = get(row, ram.ENEMY_LANE + slot) & 15
    before, lane_before = get(row, ram.PREVIOUS_DEPTH + slot), get(row, ram.PREVIOUS_LANE + slot) & 15
    kind_before = get(row, ram.PREVIOUS_TYPE + slot) & ram.TYPE_BITS
    kind = type_byte & ram.TYPE_BITS
    base = 86 + 6 * slot
    index = _lane_index(lane_of, lane)
    place, deep = _LANES[index], _OF_255[depth]
    if type_byte & ram.BETWEEN_LANES != 0 and kind != ram.FUSEBALL:
        place = np.float32(max(-15.0, min(15.0, flipping_lane(row, slot, index - 15))) / 15.0)
    out[base] = _OF_7[kind]
    out[base + 1] = np.float32(type_byte >> 6 & 1)
    out[base + 2] = np.float32(type_byte >> 7)
    out[base + 3] = np.float32(info >> 7)
    out[base + 4] = np.float32(info >> 6 & 1)
    out[base + 5] = _OF_3[info & ram.CARGO_BITS]
    out[128 + slot] = place
    out[135 + slot] = deep
    out[142 + slot] = place if depth == ram.RIM else _ABSENT
    pulsar = kind == ram.PULSAR
    out[157 + slot] = deep if pulsar else _ZERO
    out[164 + slot] = place if pulsar else _ABSENT
    out[171 + slot] = place if depth <= ram.RIM and kind <= ram.PULSAR else _ABSENT
    if moving and before != 0 and kind_before == kind:
        change = lane - lane_before
        if lane_of[1] == 15:  # closed
            if change > 8:
                change -= 16
            elif change < -8:
                change += 16
        out[181 + slot] = _LANE_CHANGE[change + 15]
        out[188 + slot] = _DEPTH_CHANGE[depth - before + 255]
    else:
        out[181 + slot] = _ZERO
        out[188 + slot] = _ZERO


@kernel
def _observe_no_enemy(slot: int, out: Values) -> None:
    """An empty enemy slot."""
    for i in range(86 + 6 * slot, 92 + 6 * slot):
        out[i] = _ZERO
    for i in (135, 157, 181, 188):
        out[i + slot] = _ZERO
    for i in (128, 142, 164, 171):
        out[i + slot] = _ABSENT


@kernel
def _lane_scale(row: Row) -> LaneScale:
    """Shift, mask and base that turn a lane into an index of _LANES, so that the tube is looked at once."""
    lane = get(row, ram.PLAYER_LANE) & 15
    if row[ram.OPEN] == 0:
        return 7 - lane, 15, 8
    return 15 - lane, 31, 0


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
    out[0] = _OF_36[row[ram.GAME_STATE]]
    out[1] = _OF_255[row[ram.GAME_MODE]]
    out[2] = _OF_255[row[ram.COUNTDOWN]]
    out[3] = _OF_6[row[ram.LIVES]]
    out[5] = _OF_15[row[ram.PLAYER_LANE]]
    out[6] = np.float32(1 - (get(row, ram.PLAYER_EDGE) >> 7))
    out[7] = _OF_15[row[ram.PLAYER_EDGE] & 15]
    out[8] = _OF_255[row[ram.PLAYER_DEPTH]]
    out[9] = _OF_2[row[ram.ZAP_USES]]
    out[10] = _OF_19[row[ram.ZAP_TIMER]]
    out[11] = _SHOTS_REMAINING[row[ram.PLAYER_SHOTS]]
    for s in range(ram.PSHOT_COUNT):
        depth = get(row, ram.PSHOT_DEPTH + s)
        place = _LANES[_lane_index(lane_of, get(row, ram.PSHOT_LANE + s))]
        out[12 + s] = _OF_256[depth]
        out[20 + s] = place if depth != 0 else _ABSENT
    for i in range(ram.LANE_COUNT):
        out[31 + i] = _HEIGHT[row[ram.SPIKE + i]]
    for kind in range(ram.TYPE_KINDS):
        out[63 + kind] = _OF_7[row[ram.TYPE_COUNT + kind]]
        out[68 + kind] = _OF_7[row[ram.TYPE_ROOM + kind]]
    out[73] = _OF_7[row[ram.ENEMIES_IN_TUBE]]
    out[74] = _OF_7[row[ram.ENEMIES_ON_RIM]]
    out[75] = _OF_63[row[ram.NYMPHS_LEFT]]
    out[77] = _BEAT[row[ram.PULSE_STEP]]
    out[78] = _OF_255[row[ram.PULSE_PHASE]]
    # The nearest thing in the own lane and its neighbours: spike tips first, then whoever is nearer.
    below, above = lane - 1 & 15, lane + 1 & 15
    tips = get(row, ram.SPIKE + lane), get(row, ram.SPIKE + below), get(row, ram.SPIKE + above)
    own = 255 if tips[0] == 0 else tips[0]
    minus = 255 if tips[1] == 0 else tips[1]
    plus = 255 if tips[2] == 0 else tips[2]
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
            out[149 + s] = _ZERO
            out[153 + s] = _ABSENT
            continue
        at = get(row, ram.ESHOT_LANE + s) & 15
        own = min(own, depth if at == lane else 255)
        minus = min(minus, depth if at == below else 255)
        plus = min(plus, depth if at == above else 255)
        out[149 + s] = np.float32((depth + get(row, ram.ESHOT_UNUSED + s) / 256.0) / 256.0)
        out[153 + s] = _LANES[_lane_index(lane_of, at)]
    out[178] = _OF_255[own]
    out[179] = _OF_255[255 if is_open and lane == 0 else minus]
    out[180] = _OF_255[255 if is_open and lane == 15 else plus]
