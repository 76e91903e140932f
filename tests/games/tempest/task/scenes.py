"""What an agent sees, is advised and earns, by the product and by its plain twin behind one interface; and the scenes.

A test takes `agent`, one of AGENTS. Memory images are 2 KiB: this tick's and the previous one's (None on the first).
A1 to A3 are the conformance vectors of the agent specification's appendix.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.sim import Cabinet, start_game, step_game
from protege.games.tempest.task import actions, observation, teacher
from protege.games.tempest.task.rewards import died, objective_reward, subjective_reward
from tests.games.tempest.rules.simulated import DIFFICULTIES, seed_that_draws_first
from tests.games.tempest.task import reference as reference
from tests.games.tempest.task.reference import Memory, Rules

RULES: tuple[Rules, ...] = ("meet", "era", "newer")
FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL = range(5)


class Advice(NamedTuple):
    lane: int
    fire: bool
    zap: bool
    cooldown: int


class Twin:
    """The plain implementation."""

    @staticmethod
    def values(now: Memory, before: Memory | None) -> list[float]:
        return reference.values(now, before)

    @staticmethod
    def rewards(now: Memory, before: Memory | None) -> tuple[float, float, bool]:
        return reference.rewards(now, before)

    @staticmethod
    def score(now: Memory) -> int:
        return reference.score(now)

    @staticmethod
    def advice(now: Memory, rules: Rules, number: float = 0.0, cooldown: int = 0) -> Advice:
        draws = iter([number, -1.0])
        lane, fire, zap, left = reference.advice(now, rules, draws.__next__, cooldown)
        assert list(draws) == [-1.0], "one number is drawn, whatever the rules then say"
        return Advice(lane, bool(fire), bool(zap), left)

    @staticmethod
    def spinner(now: Memory, target: int) -> int:
        return reference.spinner_for(target, now[ram.PLAYER_LANE] & 15, now[ram.OPEN] != 0)

    @staticmethod
    def quantised(spinner: int) -> int:
        return reference.quantise(spinner)

    @staticmethod
    def relative_lane(now: Memory, lane: int) -> int:
        return reference.relative_segment(lane, now[ram.PLAYER_LANE] & 15, now[ram.OPEN] != 0)

    @staticmethod
    def fractional_lane(now: Memory, slot: int) -> float:
        return reference.fractional_segment(now, slot)


class Product:
    """What ships, fed with a row made of the two images."""

    @staticmethod
    def values(now: Memory, before: Memory | None) -> list[float]:
        return observed(row_of(now, before)).tolist()  # type: ignore[no-any-return]

    @staticmethod
    def rewards(now: Memory, before: Memory | None) -> tuple[float, float, bool]:
        row = row_of(now, before)
        lost = bool(died(row))
        return float(objective_reward(row)), 0.0 if lost else float(subjective_reward(row)), lost

    @staticmethod
    def score(now: Memory) -> int:
        return int(ram.bcd_score(row_of(now), ram.SCORE_LOW))

    @staticmethod
    def advice(now: Memory, rules: Rules, number: float = 0.0, cooldown: int = 0) -> Advice:
        row = row_of(now)
        seed = seed_that_draws_first(int(number * 2**53) << 11)
        row[ram.PLAYER_STREAM : ram.PLAYER_STREAM + 8] = np.frombuffer(seed.to_bytes(8, "little"), np.uint8)
        row[ram.TEACHER_COOLDOWN] = cooldown
        lane, fire, zap = teacher.advise(row, teacher.RULE_SETS[rules])
        return Advice(int(lane), bool(fire), bool(zap), int(row[ram.TEACHER_COOLDOWN]))

    @staticmethod
    def spinner(now: Memory, target: int) -> int:
        return int(teacher.spinner_to(row_of(now), target))

    @staticmethod
    def quantised(spinner: int) -> int:
        return int(actions.quantised(spinner))

    @staticmethod
    def relative_lane(now: Memory, lane: int) -> int:
        return int(observation.relative_lane(row_of(now), lane))

    @staticmethod
    def fractional_lane(now: Memory, slot: int) -> float:
        row = row_of(now)
        relative = observation.relative_lane(row, int(row[ram.ENEMY_LANE + slot]))
        return float(observation.flipping_lane(row, slot, relative) if observation.is_flipping(row, slot) else relative)


Agent = type[Twin] | type[Product]
AGENTS: tuple[Agent, ...] = (Twin, Product)


def row_of(now: Memory, before: Memory | None = None) -> ram.Row:
    """A game's row that stands at one image and remembers another."""
    row = np.zeros(ram.ROW_BYTES, np.uint8)
    row[: ram.RAM_BYTES] = np.frombuffer(now, np.uint8)
    if before is None:
        return row
    kept = {ram.PREVIOUS_TYPE: (ram.ENEMY_TYPE, 7), ram.PREVIOUS_LANE: (ram.ENEMY_LANE, 7)}
    kept |= {ram.PREVIOUS_DEPTH: (ram.ENEMY_DEPTH, 7), ram.PREVIOUS_SCORE: (ram.SCORE_LOW, 3)}
    kept |= {ram.PREVIOUS_PLAYER_LANE: (ram.PLAYER_LANE, 1), ram.PREVIOUS_PLAYER_EDGE: (ram.PLAYER_EDGE, 1)}
    for to, (source, count) in kept.items():
        row[to : to + count] = np.frombuffer(before, np.uint8)[source : source + count]
    row[ram.PREVIOUS_KNOWN] = 1
    return row


def observed(row: ram.Row) -> observation.Values:
    values = np.full(observation.VALUES, np.nan, np.float32)  # so that a value nobody writes is noticed
    observation.observe_level(row, values)
    observation.observe(row, values)
    return values


# --- Scenes -----------------------------------------------------------------------------------------------------------


def image(listing: str = "") -> bytearray:
    """Memory that is zero except for the listed address=value pairs (hexadecimal); later pairs replace earlier ones."""
    return changed(bytearray(ram.RAM_BYTES), listing)


def changed(memory: bytearray, listing: str) -> bytearray:
    """The same memory with the listed bytes replaced."""
    for pair in listing.split():
        address, value = pair.split("=")
        memory[int(address, 16)] = int(value, 16)
    return memory


def scene(
    lane: int = 5,
    *enemies: tuple[int, int, int],
    shots: tuple[tuple[int, int], ...] = (),
    on_open: bool = False,
    more: str = "",
) -> bytearray:
    """Play with both zaps used: enemies are (type byte, lane, depth) from slot 0 up, shots (lane, depth)."""
    memory = image("00=04 3AA=02 3AB=05")
    memory[0x200], memory[0x111] = lane, 0xFF if on_open else 0
    for slot, (kind, enemy_lane, depth) in enumerate(enemies):
        memory[0x283 + slot], memory[0x2B9 + slot], memory[0x2DF + slot] = (kind, enemy_lane, depth)
    for slot, (shot_lane, depth) in enumerate(shots):
        memory[0x2B5 + slot], memory[0x2DB + slot] = shot_lane, depth
    return changed(memory, more)


def every(first: int, values: list[int]) -> str:
    return " ".join(f"{first + i:X}={value:02X}" for i, value in enumerate(values))


A1 = image()
A2_LISTING = (
    "00=04 04=12 05=C0 40=50 41=34 42=12 46=14 48=02 9F=14 B2=14 108=03 109=01 111=FF 125=FF 135=03 "
    "13D=01 142=02 143=01 144=01 147=F4 148=05 15D=3C 15F=40 161=80 165=FE 166=FF 169=F0 200=0F 202=10 283=C0 "
    "284=01 285=42 286=84 28A=40 28B=80 28C=42 2AD=0F 2AE=02 2B5=0E 2B9=0E 2BB=07 2BC=03 2CC=8D 2CF=81 2D3=40 "
    "2D4=80 2DB=30 2DF=10 2E0=58 2E1=90 2E2=30 2E6=40 3AA=01 3AB=06 3AC=80 3BA=20 3BB=FF "
) + every(0x3EE, [3 * i % 16 for i in range(16)])
A2 = image(A2_LISTING)
A2_BEFORE = image(A2_LISTING + " 40=00 200=0E 2B9=0D 2BB=06 2DF=18 2E1=98 2E2=00")
A2_DYING = image(A2_LISTING + " 201=81")
A3 = image("00=20 05=C0 46=03 48=05 9F=03 200=02 201=03 202=60 " + every(0x3AC, [0x90] * 16) + " 3AE=40 3B2=00")

ABSENT = (*range(20, 28), *range(128, 135), *range(142, 149), *range(153, 157), *range(164, 178))


# --- Images by the thousand -------------------------------------------------------------------------------------------


def random_images(seed: int, count: int) -> Iterator[tuple[bytes, bytes]]:
    """(now, before) of noise that still looks like play: states, lanes and depths that occur, in any combination."""
    dice = np.random.default_rng(seed)
    for _ in range(count):
        before = dice.integers(0, 256, ram.RAM_BYTES).astype(np.uint8)
        now = before.copy()
        redrawn = dice.random(ram.RAM_BYTES) < dice.random()
        now[redrawn] = dice.integers(0, 256, int(redrawn.sum()))
        for memory in (before, now):
            make_playable(memory, dice)
        for first, length in ((ram.SCORE_LOW, 3), (ram.OPEN, 1)):  # neither changes in most ticks
            if dice.random() < 0.7:
                now[first : first + length] = before[first : first + length]
        yield now.tobytes(), before.tobytes()


def make_playable(memory: ram.Row, dice: np.random.Generator) -> None:
    depths = memory[ram.ENEMY_DEPTH : ram.ENEMY_DEPTH + ram.ENEMY_COUNT]
    depths[dice.random(ram.ENEMY_COUNT) < 0.4] = 0
    depths[dice.random(ram.ENEMY_COUNT) < 0.6] &= 0x7F
    depths[dice.random(ram.ENEMY_COUNT) < 0.2] = ram.RIM
    memory[ram.GAME_STATE] = dice.choice([ram.PLAYING] * 3 + [ram.ZOOM, ram.DELAY, ram.LEVEL_SELECT])
    memory[ram.PLAYER_LANE] &= 15
    memory[ram.OPEN] = dice.choice([0x00, 0xFF])
    memory[ram.TUBE_ANGLE : ram.TUBE_ANGLE + ram.LANE_COUNT] &= 15
    for first, length in ((ram.ESHOT_DEPTH, ram.ESHOT_COUNT), (ram.SPIKE, ram.LANE_COUNT)):
        memory[first : first + length][dice.random(length) < 0.5] = 0
    digits = dice.integers(0, 10, (3, 2))
    memory[ram.SCORE_LOW : ram.SCORE_LOW + 3] = digits[:, 0] * 16 + digits[:, 1]
    memory[ram.ZAP_USES] = dice.integers(0, 3)
    if dice.random() < 0.5:
        memory[ram.NYMPHS_LEFT] = 0


def played_images(level: int, ticks: int, every_nth: int = 1) -> Iterator[tuple[bytes, bytes, ram.Row]]:
    """(now, before, the row itself) from a real game that a teacher plays with a shaky hand, to the end."""
    row = start_game(level, Cabinet(difficulty=DIFFICULTIES[level % 3]), seed=level)
    dice = random.Random(level)
    rules = teacher.RULE_SETS[RULES[level % 3]]
    for count in range(ticks):
        target, _, zap = teacher.advise(row, rules)
        spinner = teacher.spinner_to(row, target) if dice.random() < 0.8 else dice.randrange(-31, 32)
        before = row[: ram.RAM_BYTES].tobytes()
        step_game(row, dice.random() < teacher.FIRE_PROBABILITY, bool(zap), False, int(spinner))
        if count % every_nth == 0:
            yield row[: ram.RAM_BYTES].tobytes(), before, row


def save_rainbow(folder: Path, *, visible_only: bool = False, **options: Any) -> Path:
    """A checkpoint of a small Rainbow pupil that has learned nothing."""
    import torch

    from protege.games.tempest.agents.rainbow import CHECKPOINT_KIND, NetworkConfig, build_network, shape_of
    from protege.games.tempest.task.env import TASK_VERSION
    from protege.learn.rainbow import RainbowConfig
    from protege.learn.state import named_weights
    from protege.runs import checkpoints

    torch.manual_seed(5)
    settings: dict[str, Any] = {"network": "published", "widths": (32,), "stream_width": 16}
    network = NetworkConfig(**(settings | options))
    shape = shape_of(network, RainbowConfig(), visible_only)
    tensors = named_weights(build_network(shape), "network")
    path = folder / "rainbow.safetensors"
    checkpoints.save(path, tensors, {"shape": shape}, kind=CHECKPOINT_KIND, task_version=TASK_VERSION)
    return path
