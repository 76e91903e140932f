"""Two sides play: players by name, one recorded battle, and one player evaluated against another.

Built in are the scripted levels, random play and none; a run, a checkpoint or `champion` is a learned player, and
`package.module:Class` a user's own. What players tell of their decisions is recorded, with what every decision was
worth: a viewer then shows, say, what a learned player expects and what it gets.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.echelon.recordings.battle_report import TEAM_NAMES
from protege.games.echelon.recordings.recording import Channels, Recorder, write_recording
from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_SCORE, BY_TIME, RUNNING
from protege.games.echelon.rules.events import KILL
from protege.games.echelon.rules.sim import STANDARD_LENGTH, Actions, Battles, Flags
from protege.games.echelon.task.observation import measure_walks
from protege.games.echelon.task.rewards import PARTS, REWARD_STATE, RewardConfig, compute_rewards, reset_reward_state
from protege.games.echelon.task.teacher import LEVELS, RandomPlayer, Teacher
from protege.games.echelon.world.maps import STANDARD, MapMaker, generate, recipe, swap_sides
from protege.games.echelon.world.mechs import BLUE, BUILD, NOBODY, RED, Rules, find_roster
from protege.games.players import Players
from protege.seeds import EVALUATION, seed_of
from protege.statistics import wilson

BATCH: Final = 64  # battles played side by side
CHAMPIONS: Final = {"champion": Path(__file__).parents[1] / "champions" / "champion.safetensors"}
ENDING_NAMES: Final = {RUNNING: "unfinished", BY_ELIMINATION: "elimination", BY_SCORE: "score", BY_TIME: "time"}


class Player(Protocol):
    """Who decides for a side, or for any other mechs.

    One that tells something about its decisions has `channels`, what each is called and each of its numbers, and
    `thoughts()`, each channel's numbers (battles, mechs, numbers) about the last decision.
    """

    # Writes what these mechs, (battles, mechs), do next into their rows of `actions`, and into no others.
    def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None: ...


class BadMatch(ProtegeError):
    """A match that cannot be played as asked."""


class Idle:
    """Does nothing."""

    def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None:
        actions.target[mechs] = NOBODY
        for rows in (actions.move, actions.buttons, actions.ewar, actions.message, actions.order):
            rows[mechs] = 0


def _load(path: Path) -> Player:
    from protege.games.echelon.agents.pupil import Pupil, load_network

    return Pupil(load_network(path))


SIMPLE: Final[dict[str, Callable[[], Player]]] = {"random": RandomPlayer, "idle": Idle}
PLAYERS: Final = Players[Player](
    {level: partial(Teacher, level) for level in LEVELS} | SIMPLE, CHAMPIONS, _load,
    "act(battles, mechs, actions); see docs/echelon.md",
)  # fmt: skip
find_player: Final = PLAYERS.find
checkpoint_of: Final = PLAYERS.checkpoint_of


@dataclass(frozen=True)
class Setting:
    """What the battles of a measurement have in common."""

    roster: str = "10v10"
    size: tuple[int, int] = STANDARD  # columns, x and y
    length: int = STANDARD_LENGTH  # decisions
    rules: Rules = field(default=BUILD, repr=False)
    maps: MapMaker = field(default=generate, repr=False)


@dataclass(frozen=True)
class Match:
    """One battle to be played: its map, and whether the teams change places on it."""

    seed: int
    swapped: bool = False


@dataclass(frozen=True)
class Result:
    """How a battle ended; pairs are blue's and red's."""

    winner: int  # BLUE, RED or NOBODY
    ending: int
    decisions: int
    seconds: float
    score: tuple[float, float]
    living: tuple[int, int]
    kills: tuple[int, int]
    damage: tuple[float, float]


def play(
    blue: Player, red: Player, matches: Sequence[Match], setting: Setting = Setting(), *, threads: int = 1,
    names: tuple[str, str] = ("blue", "red"), recorded: Callable[[int, bytes], None] | None = None,
    ended: Callable[[int, Result], None] | None = None,
) -> list[Result]:  # fmt: skip
    """Play these matches, many at a time.

    As soon as one is over, `recorded` is given its number and recording, and then `ended` its number and result.
    """
    if not matches:
        return []
    channels = {name: each for player in (blue, red) for name, each in getattr(player, "channels", {}).items()}
    if channels:
        channels["reward"] = PARTS
    batch = _Batch(matches, setting, threads, names, channels if recorded else None)
    battles, rewards = batch.battles, _Rewards(batch.battles) if recorded and channels else None
    actions, teams = battles.no_actions(), np.broadcast_to(battles.members.team, (battles.count, battles.mech_count))
    sides = np.ascontiguousarray(teams == BLUE), np.ascontiguousarray(teams == RED)
    results: dict[int, Result] = {}
    while len(results) < len(matches):
        for player, side in zip((blue, red), sides):
            player.act(battles, side, actions)
        battles.step(actions)
        told = _told((blue, red), sides, channels, rewards) if rewards else {}
        for place, recorder in batch.recorders.items():
            recorder.note(**{name: numbers[place] for name, numbers in told.items()})
        for b in np.flatnonzero(battles.over).tolist():
            number = batch.numbers[b]
            if number not in results:
                results[number] = _result(battles, b)
                if recorded is not None:
                    recorded(number, batch.recorders.pop(b).to_bytes())
                if ended is not None:
                    ended(number, results[number])
            batch.begin_next(b)
            if rewards is not None:
                rewards.begin(b)
    return [results[number] for number in range(len(matches))]


class _Rewards:
    """What every decision was worth, by the weights that a training ends with."""

    def __init__(self, battles: Battles):
        shape = battles.count, battles.mech_count
        self._battles, self._weights = battles, RewardConfig().weights()
        self._walks, self._sums = np.zeros(shape), np.zeros(shape, np.float32)
        self._reward_state = np.zeros(shape, REWARD_STATE)
        self._parts = np.zeros((*shape, len(PARTS)), np.float32)
        for b in range(battles.count):
            self.begin(b)

    def begin(self, b: int) -> None:
        measure_walks(self._battles.records, self._battles.world, self._walks, b, b + 1)
        reset_reward_state(self._battles.records, self._walks, self._weights, self._reward_state, b)

    def compute(self) -> npt.NDArray[np.float32]:
        """The parts of the last decision's rewards (battles, mechs, PARTS)."""
        records, count = self._battles.records, self._battles.count
        measure_walks(records, self._battles.world, self._walks, 0, count)
        compute_rewards(records, self._walks, self._weights, self._reward_state, self._sums, self._parts, 0, count)
        return self._parts


def _told(
    players: Sequence[Player], sides: Sequence[Flags], channels: Channels, rewards: _Rewards
) -> dict[str, npt.NDArray[np.float32]]:
    """What both players tell, each of its own mechs, and what these get; nan where nobody tells anything."""
    found = {name: np.full((*sides[0].shape, len(numbers)), np.nan, np.float32) for name, numbers in channels.items()}
    parts = rewards.compute()
    for player, side in zip(players, sides):
        if hasattr(player, "thoughts"):
            for name, numbers in {**player.thoughts(), "reward": parts}.items():
                found[name][side] = numbers[side]
    return found


class _Batch:
    """Battles side by side, each place taken by the next match as soon as its battle has ended.

    When no match is left a place begins its last battle again, unwatched, until the others have ended.
    """

    def __init__(
        self, matches: Sequence[Match], setting: Setting, threads: int, names: Sequence[str], channels: Channels | None
    ):
        """With channels, even with none, the battles are recorded."""
        roster = find_roster(setting.roster)
        if any(match.swapped for match in matches) and roster.blue != roster.red:
            raise BadMatch(f"the sides of roster {roster.name} differ, so they cannot change places")
        self._matches, self._setting, self._names, self._channels = matches, setting, names, channels
        first = matches[:BATCH]
        self._next = len(first)
        world = setting.maps([match.seed for match in first], setting.size, setting.roster)
        swap_sides(world, np.flatnonzero([match.swapped for match in first]))
        self.battles = Battles(world, roster, setting.rules, setting.length, threads)
        self.numbers = [*range(self._next)]  # of the matches
        self.recorders: dict[int, Recorder] = {}
        for b in range(self._next):
            self._watch(b)

    def begin_next(self, b: int) -> None:
        one_is_left = self._next < len(self._matches)
        if one_is_left:
            self.numbers[b] = self._next
            self._next += 1
        match, world = self._matches[self.numbers[b]], self.battles.world
        self._setting.maps([match.seed], self._setting.size, self._setting.roster, world, [b])
        if match.swapped:
            swap_sides(world, np.array([b]))
        self.battles.reset([b])
        if one_is_left:
            self._watch(b)

    def _watch(self, b: int) -> None:
        if self._channels is not None:
            match = self._matches[self.numbers[b]]
            about = {"players": self._names, "seed": match.seed, "swapped": match.swapped}
            about["recipe"] = recipe(self.battles.world, b, self._setting.roster)
            self.recorders[b] = Recorder(self.battles, b, about, self._channels)


def _result(battles: Battles, b: int) -> Result:
    record, mechs = battles.records[b], battles.mechs[b]
    blue, red = (mechs[mechs["team"] == team] for team in (BLUE, RED))
    winner, ending, decisions = (int(record[name]) for name in ("winner", "ending", "decision"))
    return Result(
        winner, ending, decisions, seconds=decisions * (battles.rules.dt * battles.rules.ticks_per_decision),
        score=(float(record["score"][BLUE]), float(record["score"][RED])),
        living=(int(record["living"][BLUE]), int(record["living"][RED])),
        kills=(int(blue["tally"][:, KILL].sum()), int(red["tally"][:, KILL].sum())),
        damage=(float(blue["dealt"].sum()), float(red["dealt"].sum())),
    )  # fmt: skip


def fight(
    blue: str, red: str, out: Path, *, seed: int = 1, setting: Setting = Setting(), threads: int = 1,
    runs: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One battle on the first evaluation map of a seed, recorded into a file; how it ended, as one flat row."""
    began = time.perf_counter()
    players, found = (find_player(blue, runs), find_player(red, runs)), dict[int, bytes]()
    matches = [Match(seed_of(EVALUATION, seed, 0))]
    [result] = play(*players, matches, setting, threads=threads, names=(blue, red), recorded=found.__setitem__)
    write_recording(out, found[0])
    return {
        "blue": blue, "red": red, "seed": seed, "roster": setting.roster,
        "winner": "nobody" if result.winner == NOBODY else TEAM_NAMES[result.winner],
        "ending": ENDING_NAMES[result.ending], "length": result.seconds,
        **{f"{team}_{name}": getattr(result, name)[number]
           for name in ("score", "living", "kills", "damage") for number, team in enumerate(TEAM_NAMES)},
        "file": str(out), "bytes": len(found[0]), "seconds": time.perf_counter() - began,
    }  # fmt: skip


def evaluate(
    blue: str, red: str, *, matches: int = 200, seed: int = 1, setting: Setting = Setting(), threads: int = 1,
    runs: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One player against another on the evaluation maps of a seed, each map from both sides: one flat row."""
    if matches < 2 or matches % 2:
        raise BadMatch(f"every map is played from both sides, so matches must be 2, 4, 6 ...; got {matches}")
    began = time.perf_counter()
    players = find_player(blue, runs), find_player(red, runs)
    results = play(*players, both_sides(matches // 2, seed), setting, threads=threads)
    wins = sum(result.winner == BLUE for result in results)
    draws = sum(result.winner == NOBODY for result in results)
    low, high = wilson(wins + draws / 2, matches)  # 95 %
    return {
        "blue": blue, "red": red, "matches": matches, "seed": seed, "roster": setting.roster,
        "blue_win_rate": (wins + draws / 2) / matches, "blue_win_rate_low": low, "blue_win_rate_high": high,
        "draws": draws, "length_mean": float(np.mean([result.seconds for result in results])),
        **{f"endings_{name}": sum(result.ending == ending for result in results)
           for ending, name in ENDING_NAMES.items() if ending != RUNNING},
        "seconds": time.perf_counter() - began,
    }  # fmt: skip


def both_sides(maps: int, seed: int) -> list[Match]:
    """The evaluation maps of a seed, each twice."""
    seeds = [seed_of(EVALUATION, seed, index) for index in range(maps)]
    return [Match(number, swapped) for number in seeds for swapped in (False, True)]
