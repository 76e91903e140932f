"""A slow, plain reference of what a Tempest agent sees, is paid and is advised; tests compare the fast code with it.

Written from the agent specification alone, whose section numbers the docstrings cite. It shares no code with the
package and spells its own addresses, so that a wrong address in the package's memory map shows up as a difference.
Comes in: memory images of at least 2 KiB, this tick's and the previous one's (none on the first tick). "Open choice"
marks a reading where the specification leaves room. Long because it is three modules' twin and prefers steps to tricks.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

Memory = bytes | bytearray | memoryview
Rules = Literal["meet", "era", "newer"]

GAME_STATE: Final = 0x0000
COUNTDOWN: Final = 0x0004
GAME_MODE: Final = 0x0005
SCORE_BYTES_HIGH_FIRST: Final = (0x0042, 0x0041, 0x0040)
P1_LEVEL: Final = 0x0046
LIVES: Final = 0x0048
LEVEL: Final = 0x009F
PULSAR_FLIP_RATE: Final = 0x00B2
IN_TUBE: Final = 0x0108
ON_RIM: Final = 0x0109
OPEN: Final = 0x0111
ZAP_ACTIVE: Final = 0x0125
PLAYER_SHOTS_FLYING: Final = 0x0135
SPAWN_ROOM: Final = 0x013D
TYPE_ACTIVE: Final = 0x0142
PULSE_BEAT: Final = 0x0147
PULSE_PHASE: Final = 0x0148
FLIPPER_PROGRAM: Final = 0x015D
FUSEBALL_PROBABILITY: Final = 0x015F
SPEED_LOW: Final = 0x0160
SPEED_HIGH: Final = 0x0165
PLAYER_LANE: Final = 0x0200
PLAYER_STATE: Final = 0x0201
PLAYER_DEPTH: Final = 0x0202
TYPE: Final = 0x0283
INFO: Final = 0x028A
PLAYER_SHOT_LANE: Final = 0x02AD
SHOT_LANE: Final = 0x02B5
LANE: Final = 0x02B9
PROGRESS: Final = 0x02CC
PLAYER_SHOT_DEPTH: Final = 0x02D3
SHOT_DEPTH: Final = 0x02DB
DEPTH: Final = 0x02DF
SHOT_FRACTION: Final = 0x02E6
ZAP_USES: Final = 0x03AA
PENDING: Final = 0x03AB
SPIKE: Final = 0x03AC
ANGLE: Final = 0x03EE

SLOTS: Final = range(7)
SHOTS: Final = range(4)
PLAYER_SHOTS: Final = range(8)
KINDS: Final = range(5)

FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL = KINDS
PLAYING: Final = 0x04
ZOOM: Final = 0x20
RIM: Final = 0x10
DEAD: Final = 0x80

# 2.5 item 7, and 76, how often pulsars flip: eight counters and eight level parameters, sixteen values in all.
VISIBLE_ONLY_HIDDEN: Final = (*range(68, 77), *range(79, 86))

# 6: joint index = button index x 11 + spinner index.
SPINNER_LEVELS: Final = (0, 12, 9, 6, 3, 1, -1, -3, -6, -9, -12)
BUTTONS: Final = ((0, 0), (0, 1), (1, 0), (1, 1))
ACTIONS: Final = tuple((fire, zap, spinner) for fire, zap in BUTTONS for spinner in SPINNER_LEVELS)


def scaled(x: int, most: int) -> float:
    """2.2, code E(m)."""
    return min(max(x, 0), most) / most


def depth_value(x: int) -> float:
    """2.2, codes B and D."""
    return x / 255


def height(tip: int) -> int:
    """2.2, code H before the division: the length of a spike, 0 also for a tip at depth 255."""
    return 0 if tip == 0 else 255 - tip


def segment_value(relative: float | None) -> float:
    """2.2, code R; None is absent."""
    return -1.0 if relative is None else min(max(relative, -15), 15) / 15


def signed_value(x: int, most: int) -> float:
    """2.2, code S(m)."""
    return min(max(x, -most), most) / most


class Enemy(NamedTuple):
    """One occupied enemy slot."""

    slot: int
    kind: int
    lane: int
    depth: int
    distance: int  # integer relative segment
    position: float  # relative segment with the flip fraction
    moving_away: bool


class Shot(NamedTuple):
    """One enemy shot in flight."""

    slot: int
    lane: int
    depth: int
    distance: int


def player_lane(ram: Memory) -> int:
    """2.3: the player lane is the byte masked with $0F."""
    return ram[PLAYER_LANE] & 0x0F


def is_open(ram: Memory) -> bool:
    """1.3, offset 35."""
    return ram[OPEN] != 0


def wrapped(difference: float) -> float:
    """2.3: into -8..+8, both ends kept as they are."""
    if difference > 8:
        return difference - 16
    if difference < -8:
        return difference + 16
    return difference


def relative_segment(lane: int, origin: int, on_open: bool) -> int:
    """2.3, with the fixed sign it allows: the exactly opposite lane of a closed tube is always +8."""
    difference = lane % 16 - origin % 16
    if on_open:
        return difference
    difference = int(wrapped(difference))
    return 8 if difference == -8 else difference


def flip_progress(ram: Memory, slot: int) -> float:
    """2.3, flip fraction: how far an enemy between lanes has turned, 0..1."""
    lane = ram[LANE + slot] & 0x0F
    increasing = bool(ram[TYPE + slot] & 0x40)
    plus_end = (ram[ANGLE + (lane - 1) % 16] + 8) % 16
    minus_end = ram[ANGLE + lane] % 16
    start, goal = (plus_end, minus_end) if increasing else (minus_end, plus_end)
    now = ram[PROGRESS + slot] & 0x0F
    if increasing:
        travelled, total = (start - now) % 16, (start - goal) % 16
    else:
        travelled, total = (now - start) % 16, (goal - start) % 16
    return 0.0 if total == 0 else min(max(travelled / total, 0.0), 1.0)


def fractional_segment(ram: Memory, slot: int) -> float:
    """2.3: the relative segment of an occupied enemy slot, between lanes while it flips."""
    relative = relative_segment(ram[LANE + slot], player_lane(ram), is_open(ram))
    between = bool(ram[TYPE + slot] & 0x80)
    if not between or ram[TYPE + slot] & 0x07 == FUSEBALL:
        return relative
    progress = flip_progress(ram, slot)
    # The order of operations is part of the definition: the last bit of the result depends on it.
    position = (relative + progress) - 1 if ram[TYPE + slot] & 0x40 else relative - progress
    return position if is_open(ram) else wrapped(position)


def enemies(ram: Memory) -> list[Enemy]:
    """2.3, slot activity: the occupied slots, in slot order."""
    return [
        Enemy(
            slot=slot,
            kind=ram[TYPE + slot] & 0x07,
            lane=ram[LANE + slot] & 0x0F,
            depth=ram[DEPTH + slot],
            distance=relative_segment(ram[LANE + slot], player_lane(ram), is_open(ram)),
            position=fractional_segment(ram, slot),
            moving_away=bool(ram[INFO + slot] & 0x80),
        )
        for slot in SLOTS
        if ram[DEPTH + slot] > 0
    ]


def shots(ram: Memory) -> list[Shot]:
    """2.3, slot activity: the enemy shots in flight, in slot order."""
    return [
        Shot(
            slot=slot,
            lane=ram[SHOT_LANE + slot] & 0x0F,
            depth=ram[SHOT_DEPTH + slot],
            distance=relative_segment(ram[SHOT_LANE + slot], player_lane(ram), is_open(ram)),
        )
        for slot in SHOTS
        if ram[SHOT_DEPTH + slot] > 0
    ]


def values(ram: Memory, previous: Memory | None) -> list[float]:
    """2.4: the 195 values of a tick, each rounded to single precision."""
    ram = bytes(ram)  # plain numbers, even when an array of machine bytes is handed in
    previous = None if previous is None else bytes(previous)
    row: list[float] = []
    row += game_values(ram)
    row += player_values(ram)
    row += level_values(ram)
    row += global_enemy_values(ram)
    row += slot_values(ram)
    row += spatial_values(ram)
    row += danger_values(ram)
    row += velocity_values(ram, previous)
    assert len(row) == 195, len(row)
    return [single(value) for value in row]


def single(value: float) -> float:
    """The nearest 32-bit float."""
    (rounded,) = struct.unpack("f", struct.pack("f", value))
    assert isinstance(rounded, float)
    return rounded


def game_values(ram: Memory) -> list[float]:
    """2.4, indices 0-4."""
    return [
        scaled(ram[GAME_STATE], 36),
        depth_value(ram[GAME_MODE]),
        depth_value(ram[COUNTDOWN]),
        scaled(ram[LIVES], 6),
        scaled(ram[P1_LEVEL], 98),
    ]


def player_values(ram: Memory) -> list[float]:
    """2.4, indices 5-27."""
    row = [
        scaled(ram[PLAYER_LANE], 15),
        0.0 if ram[PLAYER_STATE] & DEAD else 1.0,
        scaled(ram[PLAYER_STATE] & 0x0F, 15),
        depth_value(ram[PLAYER_DEPTH]),
        scaled(ram[ZAP_USES], 2),
        scaled(ram[ZAP_ACTIVE], 19),
        scaled(8 - ram[PLAYER_SHOTS_FLYING], 8),
    ]
    row += [ram[PLAYER_SHOT_DEPTH + slot] / 256 for slot in PLAYER_SHOTS]
    for slot in PLAYER_SHOTS:
        relative = relative_segment(ram[PLAYER_SHOT_LANE + slot], player_lane(ram), is_open(ram))
        row.append(segment_value(relative if ram[PLAYER_SHOT_DEPTH + slot] > 0 else None))
    return row


def level_values(ram: Memory) -> list[float]:
    """2.4, indices 28-62."""
    row = [scaled(ram[LEVEL], 98), float(is_open(ram)), scaled(ram[LEVEL] % 16, 15)]
    row += [height(ram[SPIKE + lane]) / 255 for lane in range(16)]
    row += [scaled(ram[ANGLE + lane], 15) for lane in range(16)]
    return row


def global_enemy_values(ram: Memory) -> list[float]:
    """2.4, indices 63-85."""
    row = [scaled(ram[TYPE_ACTIVE + kind], 7) for kind in KINDS]
    row += [scaled(ram[SPAWN_ROOM + kind], 7) for kind in KINDS]
    row += [scaled(ram[IN_TUBE], 7), scaled(ram[ON_RIM], 7), scaled(ram[PENDING], 63)]
    beat = int.from_bytes([ram[PULSE_BEAT]], signed=True)
    row += [scaled(ram[PULSAR_FLIP_RATE], 40), signed_value(beat, 12), depth_value(ram[PULSE_PHASE])]
    row += [scaled(ram[FLIPPER_PROGRAM], 135), depth_value(ram[FUSEBALL_PROBABILITY])]
    for kind in KINDS:
        speed = int.from_bytes([ram[SPEED_LOW + kind], ram[SPEED_HIGH + kind]], "little", signed=True)
        row.append(signed_value(speed, 2560))
    return row


def slot_values(ram: Memory) -> list[float]:
    """2.4, indices 86-127."""
    row: list[float] = []
    for slot in SLOTS:
        if ram[DEPTH + slot] == 0:
            row += [0.0] * 6
            continue
        kind, info = ram[TYPE + slot], ram[INFO + slot]
        row.append(scaled(kind & 0x07, 7))
        row += [float(kind & 0x40 != 0), float(kind & 0x80 != 0)]
        row += [float(info & 0x80 != 0), float(info & 0x40 != 0)]
        row.append(scaled(info & 0x03, 3))
    return row


def spatial_values(ram: Memory) -> list[float]:
    """2.4, indices 128-177."""
    occupied = {enemy.slot: enemy for enemy in enemies(ram)}
    flying = {shot.slot: shot for shot in shots(ram)}

    def segments(holds: Callable[[Enemy], bool]) -> list[float]:
        chosen = (occupied.get(slot) for slot in SLOTS)
        return [segment_value(enemy.position if enemy is not None and holds(enemy) else None) for enemy in chosen]

    row = segments(lambda enemy: True)
    row += [depth_value(ram[DEPTH + slot]) for slot in SLOTS]
    row += segments(lambda enemy: enemy.depth == RIM)
    for slot in SHOTS:
        whole = ram[SHOT_DEPTH + slot]
        row.append(0.0 if whole == 0 else (whole + ram[SHOT_FRACTION + slot] / 256) / 256)
    row += [segment_value(flying[slot].distance if slot in flying else None) for slot in SHOTS]
    row += [depth_value(ram[DEPTH + slot] if ram[TYPE + slot] & 0x07 == PULSAR else 0) for slot in SLOTS]
    row += segments(lambda enemy: enemy.kind == PULSAR)
    row += segments(lambda enemy: enemy.kind in (FLIPPER, PULSAR) and enemy.depth <= RIM)
    return row


def danger_values(ram: Memory) -> list[float]:
    """2.4, indices 178-180. On open levels lane 15 exists here, as quirk 5 of 2.5 says."""
    row = []
    for offset in (0, -1, +1):
        lane = player_lane(ram) + offset
        if is_open(ram) and lane not in range(16):
            row.append(1.0)
            continue
        lane %= 16
        depths = [255]
        depths += [tip for tip in [ram[SPIKE + lane]] if tip > 0]
        depths += [enemy.depth for enemy in enemies(ram) if enemy.lane == lane]
        depths += [shot.depth for shot in shots(ram) if shot.lane == lane]
        row.append(depth_value(min(depths)))
    return row


def velocity_values(ram: Memory, previous: Memory | None) -> list[float]:
    """2.4, indices 181-194.

    Open choice: a lane change of exactly 8 on a closed level keeps its sign, because it is a difference of lanes and no
    relative segment. Open choice: "type unchanged" compares the type bits alone; direction and flip bits may change.
    """
    across, along = [0.0] * len(SLOTS), [0.0] * len(SLOTS)
    if previous is None or ram[GAME_STATE] != PLAYING:
        return across + along
    for slot in SLOTS:
        occupied = ram[DEPTH + slot] > 0 and previous[DEPTH + slot] > 0
        if not occupied or ram[TYPE + slot] & 0x07 != previous[TYPE + slot] & 0x07:
            continue
        change = (ram[LANE + slot] & 0x0F) - (previous[LANE + slot] & 0x0F)
        across[slot] = signed_value(change if is_open(ram) else int(wrapped(change)), 8)
        along[slot] = signed_value(ram[DEPTH + slot] - previous[DEPTH + slot], 128)
    return across + along


class Constants(NamedTuple):
    """4.1, and which reading of a rule a rule set follows."""

    safe_distance: int
    pulsars_wait_for_pending: bool  # rule 2: pulsars count only when nothing is pending
    three_lane_fuseball_escape: bool  # rule 5, MEET; otherwise what the reference runs
    leaves_pulsing_lanes: bool  # rule 6
    careful_zap: bool  # rule 8, NEWER; otherwise ERA


# Open choice: "newer" has no rule 6, because appendix A.4 found those rules to agree with a client that never calls it.
RULES: Final[dict[Rules, Constants]] = {
    "meet": Constants(2, False, True, True, False),
    "era": Constants(2, False, False, False, False),
    "newer": Constants(1, True, False, False, True),
}
AVOIDANCE_DEPTH: Final = 0x60
FIRE_PROBABILITY: Final = 0.95
COOLDOWN: Final = 60
HUNTED: Final = (FUSEBALL, FLIPPER, TANKER, SPIKER)

Advice = tuple[int, int, int, int]


def advice(ram: Memory, rules: Rules, draw: Callable[[], float], cooldown: int) -> Advice:
    """4.2: target lane, fire, zap and the cooldown to hand in next time; rules in their order, one draw per call.

    Nothing here asks whether the player is alive or whether the game is a demo, because no rule does.
    """
    ram = bytes(ram)
    constants = RULES[rules]
    fire = int(draw() < FIRE_PROBABILITY)
    if ram[GAME_STATE] == ZOOM:
        return zoom_target(ram), fire, 0, cooldown
    threat = nearest_threat(ram, constants)
    if threat is not None:
        return step_aside(ram, +1 if threat < 0 else -1), fire, 0, cooldown
    if ram[GAME_STATE] != PLAYING:
        return own_lane(ram), fire, 0, cooldown
    target = fuseball_escape(ram, constants)
    if target is None and constants.leaves_pulsing_lanes:
        target = pulse_escape(ram)
    if target is not None:
        return target, fire, 0, cooldown
    if constants.careful_zap:
        zap, cooldown = careful_zap(ram, cooldown)
    else:
        zap = crowd_zap(ram)
    return hunt_target(ram), fire, int(zap), cooldown


def lane_count(ram: Memory) -> int:
    """0.2: open tubes have 15 playable lanes, closed ones 16."""
    return 15 if is_open(ram) else 16


def lane_at(ram: Memory, lane: int) -> int | None:
    """The lane of that number, wrapped round a closed tube; None beyond an open tube's ends."""
    if not is_open(ram):
        return lane % 16
    return lane if lane in range(lane_count(ram)) else None


def playable(ram: Memory, lane: int) -> int:
    """Lane 15 of an open tube does not exist: the nearest that does."""
    return min(lane, lane_count(ram) - 1)


def own_lane(ram: Memory) -> int:
    """The target that means "stay"."""
    return playable(ram, player_lane(ram))


def distance_to(ram: Memory, lane: int) -> int:
    """Lanes from the player, the shorter way round a closed tube; always counted from the player's own byte."""
    return abs(relative_segment(lane, player_lane(ram), is_open(ram)))


def zoom_target(ram: Memory) -> int:
    """4.2 rule 1. Open choice: from lane 15 of an open tube the scan starts at lane 14."""
    best = own_lane(ram)
    for lane in range(lane_count(ram)):
        if zoom_rank(ram, lane) < zoom_rank(ram, best):
            best = lane
    return best


def zoom_rank(ram: Memory, lane: int) -> tuple[int, int]:
    """4.2 rule 1: lower is better. No spike is length 0, so a tip at depth 255 counts as no spike."""
    return height(ram[SPIKE + lane]), distance_to(ram, lane)


def nearest_threat(ram: Memory, constants: Constants) -> float | None:
    """4.2 rule 2: the distance of the nearest threat, first found on ties."""
    nearest: float | None = None
    for distance in threats(ram, constants):
        if abs(distance) <= constants.safe_distance and (nearest is None or abs(distance) < abs(nearest)):
            nearest = distance
    return nearest


def threats(ram: Memory, constants: Constants) -> Iterator[float]:
    """4.2 rule 2: signed distances, enemies before shots."""
    for enemy in enemies(ram):
        if enemy.kind not in (FLIPPER, PULSAR) or enemy.depth > AVOIDANCE_DEPTH:
            continue
        if enemy.kind == PULSAR and constants.pulsars_wait_for_pending and ram[PENDING] != 0:
            continue
        yield enemy.position if enemy.depth <= RIM else enemy.distance
    for shot in shots(ram):
        if shot.depth <= AVOIDANCE_DEPTH:
            yield shot.distance


def step_aside(ram: Memory, side: int) -> int:
    """4.2 rules 3 and 5: one lane to that side, at an open end one lane the other way, else stay."""
    for step in (side, -side):
        lane = lane_at(ram, player_lane(ram) + step)
        if lane is not None:
            return lane
    return own_lane(ram)


def fuseball_escape(ram: Memory, constants: Constants) -> int | None:
    """4.2 rule 5 in its two readings."""
    if constants.three_lane_fuseball_escape:
        distance = nearest_fuseball(ram, depth=0x40, lanes=2, even_moving_away=True)
        return None if distance is None else run_three_lanes(ram, +1 if distance <= 0 else -1)
    distance = nearest_fuseball(ram, depth=0x50, lanes=1, even_moving_away=False)
    return None if distance is None else step_aside(ram, +1 if distance <= 0 else -1)


def nearest_fuseball(ram: Memory, depth: int, lanes: int, even_moving_away: bool) -> int | None:
    """4.2 rule 5: the integer distance of the nearest fuseball that counts, lowest slot on ties."""
    nearest: int | None = None
    for enemy in enemies(ram):
        if enemy.kind != FUSEBALL or enemy.depth > depth or abs(enemy.distance) > lanes:
            continue
        if enemy.moving_away and not even_moving_away:
            continue
        if nearest is None or abs(enemy.distance) < abs(nearest):
            nearest = enemy.distance
    return nearest


def run_three_lanes(ram: Memory, side: int) -> int:
    """4.2 rule 5, MEET. Open choice: three lanes from the player's lane, not from the fuseball's.

    "As far as the board allows" is the farthest existing lane within three on that side; only where there is none does
    the run go the other way.
    """
    for way in (side, -side):
        for lanes in (3, 2, 1):
            lane = lane_at(ram, player_lane(ram) + way * lanes)
            if lane is not None:
                return lane
    return own_lane(ram)


def pulse_escape(ram: Memory) -> int | None:
    """4.2 rule 6. Open choice: pulsars count at any depth, and a flipping one counts in the lane its byte names."""
    if ram[PULSE_PHASE] not in range(1, 128):
        return None
    held = {enemy.lane for enemy in enemies(ram) if enemy.kind == PULSAR}
    if player_lane(ram) not in held:
        return None
    for lanes in range(1, 16):
        for side in (-1, +1):
            lane = lane_at(ram, player_lane(ram) + side * lanes)
            if lane is not None and lane not in held:
                return lane
    return own_lane(ram)


def hunt_target(ram: Memory) -> int:
    """4.2 rule 7: enemies at any depth; lowest slot when distance and depth are both equal."""
    for kind in HUNTED:
        best: Enemy | None = None
        for enemy in enemies(ram):
            if enemy.kind == kind and (best is None or hunt_rank(enemy) < hunt_rank(best)):
                best = enemy
        if best is not None:
            return playable(ram, best.lane)
    return own_lane(ram)


def hunt_rank(enemy: Enemy) -> tuple[int, int]:
    """4.2 rule 7: lower is better."""
    return abs(enemy.distance), enemy.depth


def crowd_zap(ram: Memory) -> bool:
    """4.2 rule 8, ERA: enemies of every type count."""
    near = sum(enemy.depth <= 0x60 for enemy in enemies(ram))
    return ram[ZAP_USES] < 2 and near >= 3


def careful_zap(ram: Memory, cooldown: int) -> tuple[bool, int]:
    """4.2 rule 8, NEWER. Open choice: a running cooldown blocks the whole evaluation that counts it down.

    So after a zap the next 60 evaluations that get here cannot zap and the 61st can.
    """
    if cooldown > 0:
        return False, cooldown - 1
    active = len(enemies(ram))
    near = sum(enemy.depth <= RIM for enemy in enemies(ram))
    enough = 3 if ram[ZAP_USES] == 0 else 1
    zap = ram[ZAP_USES] < 2 and active > 0 and (near >= enough or ram[PENDING] == 0)
    return zap, COOLDOWN if zap else 0


def spinner_for(target: int, lane: int, is_open: bool) -> int:
    """4.4: the spinner command that turns the player from a lane towards a target; -1 and -32768 are no target."""
    if target in (-1, -32768):
        return 0
    relative = relative_segment(target, lane, is_open)
    if relative == 0:
        return 0
    magnitude = round(min(0.9, 0.3 + 0.05 * abs(relative)) * 32)
    return max(-32, min(31, -magnitude if relative > 0 else magnitude))


def quantise(spinner: int) -> int:
    """4.4: the nearest of the 11 levels. Open choice: only +-2 lies between two levels, and goes to the slower one."""
    return min(SPINNER_LEVELS, key=lambda level: (abs(level - spinner), abs(level)))


def score(ram: Memory) -> int:
    """1.3, offset 23: six decimal digits, a digit above 9 counts as 9."""
    total = 0
    for address in SCORE_BYTES_HIGH_FIRST:
        for digit in (ram[address] >> 4, ram[address] & 0x0F):
            total = total * 10 + min(digit, 9)
    return total


def rewards(ram: Memory, previous: Memory | None, newer_start_nymphs: int | None = None) -> tuple[float, float, bool]:
    """5.1 and 5.2: objective and subjective reward in points, and whether this tick lost a life.

    Open choice: without a previous tick nothing changed, so nobody died, nothing was scored and the player stood still.
    """
    ram = bytes(ram)
    before = ram if previous is None else bytes(previous)
    if not before[PLAYER_STATE] & DEAD and ram[PLAYER_STATE] & DEAD:
        return -1000.0, 0.0, True
    gained = score(ram) - score(before)
    objective = float(gained) if 0 < gained < 1000 else 0.0
    if newer_start_nymphs is not None and newer_start_nymphs > 0 and ram[ZAP_USES] > before[ZAP_USES]:
        objective -= 1000 * (ram[PENDING] / newer_start_nymphs)
    return (objective, lane_safety(ram, moved=player_lane(ram) != player_lane(before)), False)


def lane_safety(ram: Memory, moved: bool) -> float:
    """5.2. Lane 15 of an open tube is skipped as a neighbour; the player's own lane always counts."""
    if ram[GAME_STATE] not in (PLAYING, ZOOM):
        return 0.0
    threatened = {enemy.lane for enemy in enemies(ram) if enemy.depth <= 0x80}
    threatened |= {shot.lane for shot in shots(ram) if shot.depth <= 0x80}
    total = 0.0
    for offset, weight in ((0, 1.0), (+1, 0.5), (-1, 0.5), (+2, 0.25), (-2, 0.25)):
        lane = player_lane(ram) if offset == 0 else lane_at(ram, player_lane(ram) + offset)
        if lane is not None:
            total += -2.0 * weight if lane in threatened else 2.0 * weight
    return total * (1.0 if moved else 0.5)


def total_reward(objective: float, subjective: float) -> float:
    """5.3, MEET: both scaled, summed and clipped."""
    return max(-10.0, min(10.0, 0.01 * objective + 0.01 * subjective))
