"""What every game keeps, whatever is pressed; and that a game depends on its seed and its controls alone.

Thousands of games on all levels are played once, a few by the teacher and most by chance. Every property looks at every
tick of every game, alone or together with the tick before.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.sim import Cabinet, is_over, play_games, start_game, step_game
from protege.games.tempest.task.env import Games, from_snapshot, starts
from protege.games.tempest.task.teacher import RULE_SETS, advise, spinner_to

RANDOM_GAMES, TEACHER_GAMES, TICKS = 2000, 240, 1000
DIFFICULTIES = ("easy", "medium", "hard")
RIM_SCRIPTS = (0x46, 0x4A)  # resume points of a rim rider

Ints = npt.NDArray[np.int16]
Commands = npt.NDArray[np.int8]


@dataclass
class Look:
    """One tick of many games: the bytes properties need, as numbers that do not wrap, (games,) or (games, slots).

    The rows move on with the next tick, so of the tick before a property may ask for the attributes alone.
    """

    rows: ram.Rows

    def __post_init__(self) -> None:
        self.state = self.byte(ram.GAME_STATE)
        self.alive = self.byte(ram.PLAYER_EDGE) & ram.DYING == 0
        self.in_play = np.isin(self.state, (ram.PLAYING, ram.ZOOM))
        self.open = self.byte(ram.OPEN) != 0
        self.nymphs = self.byte(ram.NYMPHS_LEFT)
        self.depth = self.bytes(ram.ENEMY_DEPTH, ram.ENEMY_COUNT)
        self.lane = self.bytes(ram.ENEMY_LANE, ram.ENEMY_COUNT)
        self.kind = self.bytes(ram.ENEMY_TYPE, ram.ENEMY_COUNT) & ram.TYPE_BITS
        self.occupied = self.depth != 0
        self.riding = self.occupied & np.isin(self.bytes(ram.ENEMY_SCRIPT, ram.ENEMY_COUNT), RIM_SCRIPTS)
        self.player_shots = self.bytes(ram.PSHOT_DEPTH, ram.PSHOT_COUNT)
        self.enemy_shots = self.bytes(ram.ESHOT_DEPTH, ram.ESHOT_COUNT)
        self.blasts = self.bytes(ram.BLAST_DEPTH, ram.BLAST_COUNT)
        self.type_counts = self.bytes(ram.TYPE_COUNT, ram.TYPE_KINDS)
        kinds = np.where(self.occupied, self.kind, ram.TYPE_KINDS)
        present = [np.sum(kinds == kind, axis=1, dtype=np.int16) for kind in range(ram.TYPE_KINDS)]
        self.type_drift = signed(self.type_counts - np.stack(present, axis=1))
        self.rim_drift = signed(self.byte(ram.ENEMIES_ON_RIM) - self.riding.sum(axis=1))
        self.score, self.bonus = self.word(ram.SCORE), self.word(ram.START_BONUS)

    def byte(self, address: int) -> Ints:
        return self.rows[:, address].astype(np.int16)

    def bytes(self, first: int, count: int) -> Ints:
        return self.rows[:, first : first + count].astype(np.int16)

    def word(self, address: int) -> npt.NDArray[np.int64]:
        return np.ascontiguousarray(self.rows[:, address : address + 8]).view("<i8")[:, 0]

    def shown_score(self):
        digits = self.bytes(ram.SCORE_LOW, 3).astype(np.int64)
        return (digits % 16 + 10 * (digits // 16)) @ np.array([1, 100, 10_000])


def signed(difference: Ints) -> Ints:
    """A difference of bytes, from -128 to 127."""
    return difference.astype(np.int8).astype(np.int16)


def within(values: Ints, low: int, high: int):
    return ((values >= low) & (values <= high)).reshape(len(values), -1).all(axis=1)


# --- Properties: True for each game that keeps it ---------------------------------------------------------------------

Property = Callable[[Look, Look], Any]
PROPERTIES: list[Property] = []


def kept(check: Property) -> Property:
    PROPERTIES.append(check)
    return check


@kept
def the_two_counters_add_up_to_the_occupied_slots_while_the_player_lives(before: Look, now: Look):
    """Falling enemies are removed without being counted, so this ends with the player's life."""
    counted = now.byte(ram.ENEMIES_IN_TUBE) + now.byte(ram.ENEMIES_ON_RIM)
    return ~now.alive | (counted % 256 == now.occupied.sum(axis=1))


@kept
def the_type_counts_add_up_to_the_occupied_slots_while_the_player_lives(before: Look, now: Look):
    return ~now.alive | (now.type_counts.sum(axis=1) % 256 == now.occupied.sum(axis=1))


@kept
def the_unwrapped_score_never_falls(before: Look, now: Look):
    return (now.score >= before.score) & (now.bonus >= before.bonus)


@kept
def the_shown_score_is_the_unwrapped_one_and_the_bonus_in_six_digits(before: Look, now: Look):
    return now.shown_score() == (now.score + now.bonus) % 1_000_000


@kept
def enemies_are_between_the_rim_and_the_far_end(before: Look, now: Look):
    return within(np.where(now.occupied, now.depth, ram.RIM), ram.RIM, 0xF2)


@kept
def shots_are_between_the_rim_and_the_far_end(before: Look, now: Look):
    """But for the tick that ends the zoom: a shot fired there, at $FF, wraps round; it is gone in the next."""
    own = np.where(now.player_shots == 0, ram.RIM, now.player_shots)
    enemy = np.where(now.enemy_shots == 0, ram.RIM, now.enemy_shots)
    inside = within(own, ram.RIM, ram.FAR_END - 1) & within(enemy, ram.RIM, 0xF2)
    return (now.state == ram.LEVEL_DONE) | inside


@kept
def a_living_player_is_on_the_rim_or_on_the_way_down(before: Look, now: Look):
    depth = now.byte(ram.PLAYER_DEPTH)
    zooming = (now.state == ram.ZOOM) & within(depth, ram.RIM, ram.FAR_END - 1)
    arrived = (now.state == ram.LEVEL_DONE) | (before.state == ram.LEVEL_DONE)
    return ~now.alive | (depth == ram.RIM) | zooming | (arrived & (depth == 0xFF))


@kept
def spikes_end_inside_the_tube(before: Look, now: Look):
    tips = now.bytes(ram.SPIKE, ram.LANE_COUNT)
    return within(np.where(tips == 0, ram.FAR_END, tips), ram.RIM, 0xF1)


@kept
def the_shot_counters_are_the_occupied_slots(before: Look, now: Look):
    own = now.byte(ram.PLAYER_SHOTS) == (now.player_shots != 0).sum(axis=1)
    return own & (now.byte(ram.ENEMY_SHOTS) == (now.enemy_shots != 0).sum(axis=1))


@kept
def the_explosion_counter_is_the_running_ones(before: Look, now: Look):
    return ~now.in_play | (now.byte(ram.EXPLOSIONS) == (now.blasts != 0).sum(axis=1))


@kept
def lanes_are_0_to_15(before: Look, now: Look):
    arrays = {ram.PLAYER_LANE: 1, ram.NYMPH_LANE: ram.NYMPH_COUNT, ram.ENEMY_LANE: ram.ENEMY_COUNT}
    arrays |= {ram.PSHOT_LANE: ram.PSHOT_COUNT, ram.ESHOT_LANE: ram.ESHOT_COUNT}
    highest = [now.rows[:, first : first + count].max(axis=1) for first, count in arrays.items()]
    return np.maximum.reduce(highest) <= 15


@kept
def nobody_but_a_fuseball_is_in_lane_15_of_an_open_tube(before: Look, now: Look):
    """Fuseballs sit on lines, of which an open tube has 16."""
    player = now.in_play & (now.byte(ram.PLAYER_LANE) == 15)
    enemies = (now.occupied & (now.lane == 15) & (now.kind != ram.FUSEBALL)).any(axis=1)
    return ~now.open | ~(player | enemies)


@kept
def no_level_ends_while_something_explodes_or_waits(before: Look, now: Look):
    quiet = (now.blasts == 0).all(axis=1) & (now.byte(ram.EXPLOSIONS) == 0) & (now.nymphs == 0)
    return ~level_ends(before, now) | (quiet & (now.depth <= ram.RIM).all(axis=1))


@kept
def type_counts_drift_only_by_the_second_rider_and_the_last_spikers(before: Look, now: Look):
    """Quirk 5: a pulsar that becomes a flipper, a spiker that becomes a tanker; both only when no nymph is left."""
    change = now.type_drift - before.type_drift
    riders, spikers = lost_pulsars(before, now), lost_spikers(before, now)
    explained = np.stack([-riders, riders, -spikers, spikers, 0 * riders], axis=1)
    by_quirk = (change == explained).all(axis=1) & (riders >= 0) & (spikers >= 0)
    by_quirk &= (change == 0).all(axis=1) | ((before.state == ram.PLAYING) & (now.nymphs == 0))
    return ~undisturbed(before, now) | by_quirk


@kept
def the_rim_count_drifts_only_by_bounced_pulsars_and_riders_shot_in_the_zoom(before: Look, now: Look):
    """Quirk 6: a pulsar killed at the rim while nymphs are left; section 9: a rider killed when the player has left."""
    change = now.rim_drift - before.rim_drift
    bounced = bounced_pulsars(before) * (before.nymphs != 0)
    by_quirk = (change == 0) | ((change < 0) & (-change <= bounced) & (before.state == ram.PLAYING))
    by_quirk |= (change > 0) & (change <= before.riding.sum(axis=1)) & (before.state == ram.ZOOM)
    return ~undisturbed(before, now) | by_quirk


@kept
def a_new_life_and_a_new_level_set_the_counters_right(before: Look, now: Look):
    fresh = np.isin(before.state, (ram.NEW_LIFE, ram.LEVEL_DONE))
    return ~fresh | ((now.type_drift == 0).all(axis=1) & (now.rim_drift == 0))


@kept
def lives_are_at_most_six(before: Look, now: Look):
    return within(now.byte(ram.LIVES), 0, 6)


def level_ends(before: Look, now: Look):
    warned = (now.state == ram.DELAY) & (now.byte(ram.NEXT_STATE) == ram.ZOOM)
    return (before.state == ram.PLAYING) & ((now.state == ram.ZOOM) | warned)


def undisturbed(before: Look, now: Look):
    """The player lived through the tick, and it set up no new life or level."""
    return before.alive & now.alive & ~np.isin(before.state, (ram.NEW_LIFE, ram.LEVEL_DONE))


def lost_pulsars(before: Look, now: Look):
    return (now.type_drift - before.type_drift)[:, ram.PULSAR]


def lost_spikers(before: Look, now: Look):
    return (now.type_drift - before.type_drift)[:, ram.SPIKER]


def bounced_pulsars(look: Look):
    return (look.occupied & (look.kind == ram.PULSAR) & (look.depth == ram.RIM) & ~look.riding).sum(axis=1)


# --- The games --------------------------------------------------------------------------------------------------------


def random_commands(dice: np.random.Generator, games: int) -> Commands:
    """(games, 3): fire, zap, spinner."""
    commands = np.empty((games, 3), np.int8)
    commands[:, 0] = dice.random(games) < 0.6
    commands[:, 1] = dice.random(games) < 0.03
    commands[:, 2] = dice.integers(-40, 41, games)
    return commands


def many_games() -> ram.Rows:
    """One row each: levels, difficulties and numbers of lives in turn."""
    games = range(RANDOM_GAMES + TEACHER_GAMES)
    cabinets = [Cabinet(lives=2 + g % 4, bonus=g % 8, difficulty=DIFFICULTIES[g // 4 % 3]) for g in games]
    return np.stack([start_game(1 + g % 99, cabinets[g], seed=g) for g in games])


def ticks_of_many_games() -> Iterator[tuple[Look, Look]]:
    """Every tick with the one before it."""
    rows, dice = many_games(), np.random.default_rng(1)
    rules = list(RULE_SETS.values())
    before = Look(rows)
    for tick in range(TICKS):
        commands = random_commands(dice, len(rows))
        for g in range(TEACHER_GAMES):
            target, _, zap = advise(rows[g], rules[g % 3])
            commands[g] = g % 20 != tick % 20, zap, spinner_to(rows[g], target)
        play_games(rows, commands[None], False)
        now = Look(rows)
        yield before, now
        before = now


@dataclass
class Findings:
    """What the games did: the first breach of each property, and how often the rare things happened."""

    breaches: dict[str, str]
    seen: Counter[str]


@pytest.fixture(scope="module")
def findings() -> Findings:
    breaches: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for tick, (before, now) in enumerate(ticks_of_many_games()):
        for check in PROPERTIES:
            broken = np.flatnonzero(~check(before, now))
            if len(broken) and check.__name__ not in breaches:
                breaches[check.__name__] = f"tick {tick}, games {broken[:8].tolist()} of many_games()"
        stayed = undisturbed(before, now)
        drifted = stayed & (now.rim_drift != before.rim_drift)
        seen["level ends"] += int(level_ends(before, now).sum())
        seen["lost pulsars"] += int(lost_pulsars(before, now)[stayed].sum())
        seen["lost spikers"] += int(lost_spikers(before, now)[stayed].sum())
        seen["rim drift in play"] += int((drifted & (before.state == ram.PLAYING)).sum())
        seen["rim drift in zoom"] += int((drifted & (before.state == ram.ZOOM)).sum())
        seen["over"] = int((now.state == ram.HIGH_SCORE_CHECK).sum())
    return Findings(breaches, seen)


@pytest.mark.parametrize("name", [check.__name__ for check in PROPERTIES])
def test_every_game_keeps_its_invariants(findings, name):
    assert name not in findings.breaches, findings.breaches[name]


def test_the_games_come_to_everything_the_invariants_are_about(findings):
    rare = ("level ends", "lost pulsars", "lost spikers", "rim drift in play", "rim drift in zoom", "over")
    assert all(findings.seen[what] for what in rare), findings.seen


# --- Seeds, batches, threads and snapshots ----------------------------------------------------------------------------


def played(rows: ram.Rows, commands: list[Commands], batch: int) -> ram.Rows:
    """The games after these commands, stepped in batches of so many, with the ticks between frames passed over."""
    rows = rows.copy()
    for first in range(0, len(rows), batch):
        part = rows[first : first + batch]
        for step in commands:
            play_games(part, step[None, first : first + batch], True)
    return rows


def commands_for(games: int, frames: int, seed: int = 3) -> list[Commands]:
    dice = np.random.default_rng(seed)
    return [random_commands(dice, games) for _ in range(frames)]


def spread_games(games: int = 64) -> ram.Rows:
    return starts(games, seed=5, level=[1 + 17 * g % 99 for g in range(games)])


@pytest.mark.parametrize("batch", [1, 7])
def test_a_game_is_the_same_in_every_batch_size(batch):
    rows, commands = spread_games(), commands_for(64, 400)
    assert np.array_equal(played(rows, commands, batch), played(rows, commands, 64))


def test_a_game_is_the_same_whichever_thread_steps_it():
    rows, commands = spread_games(), commands_for(64, 400)
    alone, shared = rows.copy(), rows.copy()
    with ThreadPoolExecutor(2) as pool:
        for step in commands:
            play_games(alone, step[None], True)
            list(pool.map(play_games, (shared[:32], shared[32:]), (step[None, :32], step[None, 32:]), [True] * 2))
    assert np.array_equal(alone, shared)


@pytest.mark.parametrize("games", [1, 7, 64])
def test_everything_an_agent_sees_is_the_same_with_one_thread_and_with_two(games):
    one, two = (Games(spread_games(games), threads=threads) for threads in (1, 2))
    for _ in range(300):
        frames = one.step(one.frames.advice_full.copy()), two.step(two.frames.advice_full.copy())
        for name in ("observation", "objective", "subjective", "reward", "over", "score", "advice", "uniform"):
            assert np.array_equal(*(getattr(f, name) for f in frames)), name
    assert np.array_equal(one.rows, two.rows)


def test_a_game_goes_on_from_a_snapshot_as_if_nothing_had_happened():
    games = Games(spread_games(8))
    commands = commands_for(8, 300)
    for step in commands[:150]:
        games.step(step)
    kept_rows = np.stack([from_snapshot(games.snapshot(g)) for g in range(8)])
    for step in commands[150:]:
        games.step(step)
    first = games.rows.copy(), games.frames.score.copy()
    games.put(np.arange(8), kept_rows)
    for step in commands[150:]:
        games.step(step)
    assert np.array_equal(games.rows, first[0])
    assert np.array_equal(games.frames.score, first[1])


def test_fast_forward_leaves_the_bytes_of_ticking_with_neutral_controls():
    quick = spread_games()
    slow = quick.copy()
    passed = 0
    for commands in commands_for(64, 500):
        play_games(quick, commands[None], True)
        play_games(slow, commands[None], False)
        for row in slow:
            while not ram.in_control(row) and not is_over(row):
                step_game(row, False, False, False, 0)
                passed += 1
        assert np.array_equal(quick, slow)
    assert passed > 1000


def test_the_same_seed_gives_the_same_game_and_another_seed_another_one():
    commands = [np.repeat(step, 64, axis=0) for step in commands_for(1, 200)]
    rows = np.stack([start_game(9, seed=seed) for seed in (*range(32), *range(32))])
    memories = [row[: ram.RAM_BYTES].tobytes() for row in played(rows, commands, 64)]
    assert memories[:32] == memories[32:]
    assert len(set(memories)) == 32


def test_a_replay_of_known_commands_ends_as_stepping_them_does():
    rows = starts(12, level=[1, 5, 9, 17, 33, 40, 49, 65, 81, 98, 99, 3], seed=8)
    commands = np.random.default_rng(3).integers(-12, 13, (600, 12, 3)).astype(np.int8)
    commands[..., :2] = commands[..., :2] > 0
    stepped, replayed = rows.copy(), rows.copy()
    for command in commands:
        play_games(stepped, command[None], True)
    play_games(replayed, commands, True)
    assert np.array_equal(stepped, replayed)
    assert is_over(replayed[0]) or ram.in_control(replayed[0])
