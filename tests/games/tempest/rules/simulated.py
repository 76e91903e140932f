"""Both implementations of the game behind one interface, and how a test sets a scene on them.

A test takes `machine`, one of MACHINES, and makes games of it: the slow reference or one row of the simulator. Both
show their 2 KiB of memory as `ram` and draw from the same random stream, so one staging serves both. Addresses come
from the reference, which spells them independently of the simulator's map.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any, Protocol

from protege.games.tempest.rules import ram as margin
from protege.games.tempest.rules import sim
from tests.games.tempest.rules import reference as t
from tests.games.tempest.rules.reference import ReferenceGame, random_bytes

DIFFICULTIES = ("medium", "easy", "hard")  # by the machine's number
WORD = 1 << 64
STREAM_STEP = 0x9E3779B97F4A7C15
STREAM_SHIFTS = ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1))


def seed_that_draws_first(word: int) -> int:
    """The seed whose first 64 random bits are these: the generator run backwards."""
    for shift, factor in STREAM_SHIFTS:
        shifted = word
        for _ in range(64 // shift):
            shifted = word ^ (shifted >> shift)
        word = shifted * pow(factor, -1, WORD) % WORD
    return (word - STREAM_STEP) % WORD


@functools.cache
def seed_that_draws(*values: int) -> int:
    """A seed whose random bytes begin with these."""
    for low in itertools.count():
        seed = seed_that_draws_first(values[0] << 56 | low)
        stream = random_bytes(seed)
        if all(stream() == value for value in values):
            return seed
    raise AssertionError("unreachable: some seed draws them")


class Game(Protocol):
    """What a test may do with a game of either implementation."""

    ram: Any  # the machine's 2 KiB, as mutable bytes

    def power_on(self) -> None: ...
    def start_at(self, level: int, start_choice: int = 0) -> None: ...
    def tick(self, fire: bool = False, zap: bool = False, start: bool = False, spinner: int = 0) -> None: ...
    def will_draw(self, *values: int) -> None: ...
    def drawn(self) -> int: ...


class Reference(ReferenceGame):
    """The slow reference with a seed of its own."""

    def __init__(self, seed: int = 0, **options: Any) -> None:
        self.seed(seed)
        super().__init__(self.draw, **options)

    def seed(self, seed: int) -> None:
        self.source, self.draws = random_bytes(seed), 0

    def draw(self) -> int:
        self.draws += 1
        return self.source()

    def will_draw(self, *values: int) -> None:
        """From here on the random bytes are these, then arbitrary ones."""
        self.seed(seed_that_draws(*values))

    def drawn(self) -> int:
        """Random bytes taken since the last `will_draw`."""
        return self.draws


class Simulated:
    """One row of the simulator."""

    def __init__(self, seed: int = 0, *, difficulty: int = 0, rating: bool = False, **options: Any) -> None:
        self.first_state = seed
        self.cabinet = sim.Cabinet(difficulty=DIFFICULTIES[difficulty], rated=rating, **options)
        self.power_on()

    def take(self, row: margin.Row) -> None:
        self.row = row
        self.ram = row.data[: margin.RAM_BYTES]

    def power_on(self) -> None:
        self.take(sim.power_on(self.cabinet, self.first_state))

    def start_at(self, level: int, start_choice: int = 0) -> None:
        self.take(sim.start_game(level, self.cabinet, self.first_state))
        self.ram[t.START_CHOICE] = start_choice

    def tick(self, fire: bool = False, zap: bool = False, start: bool = False, spinner: int = 0) -> None:
        sim.press(self.row, bool(fire), bool(zap), bool(start), int(spinner))
        sim.tick(self.row)

    def stream(self) -> slice:
        return slice(margin.GAME_STREAM, margin.GAME_STREAM + 8)

    def will_draw(self, *values: int) -> None:
        self.first_state = seed_that_draws(*values)
        self.row.data[self.stream()] = self.first_state.to_bytes(8, "little")

    def drawn(self) -> int:
        state = int.from_bytes(self.row[self.stream()].tobytes(), "little")
        return (state - self.first_state) * pow(STREAM_STEP, -1, WORD) % WORD


Machine = type[Reference] | type[Simulated]
MACHINES: tuple[Machine, ...] = (Reference, Simulated)


# --- Staging ----------------------------------------------------------------------------------------------------------


def started(machine: Machine, level: int, seed: int = 1, start_choice: int = 0, **options: Any) -> Game:
    """A game in the first playing tick of a level."""
    game = machine(seed, **options)
    game.start_at(level, start_choice)
    return game


def quiet(machine: Machine, level: int = 1, **options: Any) -> Game:
    """A level in which nothing hatches but one nymph is kept in reserve, so that the level does not end."""
    game = started(machine, level, **options)
    clear(game, t.NYMPH_TIMER, t.NYMPHS)
    clear(game, t.SPIKE, t.LANES)
    game.ram[t.NYMPHS_LEFT] = 1
    return game


def clear(game: Game, first: int, count: int) -> None:
    game.ram[first : first + count] = bytes(count)


def clear_shots(game: Game) -> None:
    clear(game, t.PSHOT_DEPTH, t.PSHOTS + t.ESHOTS)
    game.ram[t.PSHOT_COUNT] = game.ram[t.ESHOT_COUNT] = 0


def clear_enemies(game: Game) -> None:
    clear(game, t.ENEMY_DEPTH, t.ENEMIES)
    clear(game, t.ENEMY_FRAC, t.ENEMIES)
    clear(game, t.TYPE_COUNT, 5)
    game.ram[t.IN_TUBE] = game.ram[t.ON_RIM] = 0


def listed(game: Game, first: int, count: int) -> list[int]:
    return list(game.ram[first : first + count])


def place(
    game: Game, slot: int, kind: int, lane: int, depth: int, script: int = 0x07, info: int = 0, counter: int = 0,
    bits: int = 0,
) -> None:  # fmt: skip
    """An enemy, counted as one inside the tube; `bits` are the direction and flip bits of its type byte."""
    ram = game.ram
    ram[t.ENEMY_TYPE + slot] = kind | bits
    ram[t.ENEMY_INFO + slot] = info
    ram[t.ENEMY_LANE + slot] = lane
    ram[t.ENEMY_EDGE + slot] = (lane + 1) & 15
    ram[t.ENEMY_DEPTH + slot] = depth
    ram[t.ENEMY_FRAC + slot] = 0
    ram[t.ENEMY_SCRIPT + slot] = script
    ram[t.ENEMY_COUNTER + slot] = counter
    ram[t.TYPE_COUNT + kind] += 1
    ram[t.IN_TUBE] += 1


def place_fuseball(game: Game, edge: int, depth: int = 0x60, slot: int = 6) -> None:
    """A fuseball in lane 5 that stays where it is; with edge bit 7 set it is leaping, and can be hit."""
    place(game, slot, t.FUSEBALL, 5, depth, script=0x6B, counter=200)
    game.ram[t.ENEMY_EDGE + slot] = edge


def place_nymph(game: Game, slot: int, timer: int, lane: int) -> None:
    game.ram[t.NYMPH_TIMER + slot], game.ram[t.NYMPH_LANE + slot] = timer, lane


def shoot_at(game: Game, lane: int, depth: int) -> None:
    """Put a player shot where the next tick takes it to this depth, in which hits are then tested."""
    ram = game.ram
    ram[t.PSHOT_DEPTH + 7], ram[t.PSHOT_LANE + 7], ram[t.PSHOT_EDGE + 7] = depth - 9, lane, (lane + 1) & 15
    ram[t.PSHOT_HITS + 7] = 0
    ram[t.PSHOT_COUNT] = 1


def put_player(game: Game, lane: int) -> None:
    game.ram[t.PLAYER_LANE] = lane
    game.ram[t.PLAYER_EDGE] = (lane + 1) & 15
    game.ram[t.PLAYER_POS] = lane * 16 + 8


def shoot_player(game: Game) -> None:
    """Kill the player with an enemy shot in the next tick, which is run here."""
    ram = game.ram
    ram[t.ESHOT_DEPTH], ram[t.ESHOT_LANE], ram[t.ESHOT_COUNT] = 0x11, ram[t.PLAYER_LANE], 1
    game.tick()
    assert ram[t.PLAYER_EDGE] == t.BLOWN_UP


def finish_level(game: Game) -> None:
    """End the level in the next tick, which is run here."""
    clear(game, t.NYMPH_TIMER, t.NYMPHS)
    game.ram[t.NYMPHS_LEFT] = 0
    game.tick()


def earn_point(game: Game) -> None:
    """One point, for touching a spike; the tick is run here."""
    game.ram[t.SPIKE + 5] = 0x40
    shoot_at(game, 5, 0x49)
    game.tick()
    clear_shots(game)


def set_score(game: Game, points: int, at: int = t.SCORE) -> None:
    game.ram[at : at + 3] = bytes(t.bcd_bytes(points))


# --- Reading ----------------------------------------------------------------------------------------------------------


def score(game: Game, at: int = t.SCORE) -> int:
    return sum(t.bcd_to_int(game.ram[at + i]) * 100**i for i in range(3))


def is_alive(game: Game) -> bool:
    return not game.ram[t.PLAYER_EDGE] & 0x80


def active(game: Game) -> list[int]:
    """The occupied enemy slots."""
    return [slot for slot in range(t.ENEMIES) if game.ram[t.ENEMY_DEPTH + slot]]


def kind_of(game: Game, slot: int) -> int:
    return int(game.ram[t.ENEMY_TYPE + slot]) & t.TYPE_BITS


def is_flipping(game: Game, slot: int = 6) -> bool:
    return bool(game.ram[t.ENEMY_TYPE + slot] & t.FLIPPING)


def fine_depth(game: Game, slot: int = 6) -> int:
    """Depth of an enemy in 256ths of a unit."""
    return int(game.ram[t.ENEMY_DEPTH + slot]) * 256 + int(game.ram[t.ENEMY_FRAC + slot])


def speed_word(game: Game, kind: int) -> int:
    return int(game.ram[t.SPEED_HI + kind]) * 256 + int(game.ram[t.SPEED_LO + kind])


def run_until(game: Game, state: int, limit: int = 2000) -> int:
    """Tick until the game is in this state; the number of ticks it took."""
    for ticks in range(1, limit + 1):
        game.tick()
        if game.ram[t.GAMESTATE] == state:
            return ticks
    raise AssertionError(f"state {state:02X} was not reached")


def ticks_in(game: Game, state: int) -> int:
    """How many ticks the game stays in the state it is in now."""
    assert game.ram[t.GAMESTATE] == state
    for ticks in itertools.count(1):
        game.tick()
        if game.ram[t.GAMESTATE] != state:
            return ticks
    raise AssertionError("unreachable: the count does not end")


def kills(game: Game, ticks: int) -> Iterator[tuple[int, int]]:
    """(tick, slot) of each enemy that vanishes during so many ticks."""
    for tick in range(1, ticks + 1):
        before = active(game)
        game.tick()
        yield from ((tick, slot) for slot in before if slot not in active(game))
