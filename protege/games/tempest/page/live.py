"""Tempest to watch: games that go on tick by tick and tell a page what to draw.

A live view has a `rate` in ticks a second, `tick`, which plays one and returns a message, and `hear` for what a viewer
says. Here are three: players at work (`LiveGames`), clients of an arcade server (`ArcadeGames`), and one recorded game,
to be wound to and fro (`Film`); human.py has a person beside the champion. Knows no socket: whoever serves the page
drives live views and passes messages on.

A message is the length of a JSON text (4 bytes, little end first), the text, and for every game whose `lines` are not 0
its lines: x, y, x, y as 16-bit numbers of 1/32767, then red, green, blue, then brightness in hundredths, 8 bits each.
The same for the `gaze` lines behind them, which tell what the player attends to.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.agents.players import BUILT_IN, CHAMPIONS, Player, checkpoint_of, find_player
from protege.games.tempest.arcade.screens import Arcade, Screen, activity, arcades, memory_of
from protege.games.tempest.rules import ram, sim
from protege.games.tempest.rules.ram import Row
from protege.games.tempest.rules.sim import Commands
from protege.games.tempest.task import drawing
from protege.games.tempest.task.actions import ACTIONS, to_commands
from protege.games.tempest.task.env import Frames, Games, starts
from protege.games.tempest.task.observation import VALUES
from protege.games.tempest.task.recordings import Moves
from protege.runs.run import RunError, open_run
from protege.seeds import EVALUATION

if TYPE_CHECKING:
    from protege.games.tempest.agents.rainbow import Thoughts  # torch takes a second to import, and scripts need none

RATE: Final = ram.TICKS_PER_SECOND
GRID: Final = (1, 4, 9, 16)  # games that can be watched side by side
DRAWN: Final = 8  # pictures a tick: a grid of more games shows each of them less often
GAME_OVER_TICKS: Final = 70  # how long a finished game stays on the screen
RELOAD_SECONDS: Final = 1.0  # between looks for newer weights
TOP: Final = 5  # action values that are told
EXPLAINED: Final = 4  # games in which attention is shown: in smaller pictures nobody sees it

Values = npt.NDArray[np.float32]  # (games, 44)
Command = tuple[int, int, int]  # fire, zap, spinner
Told = dict[str, Any]  # about a game, beside its picture


def pack(about: Mapping[str, Any], pictures: Sequence[drawing.Picture]) -> bytes:
    """A message: what is to be said, and the lines of the games that have any, in their order."""
    text = msgspec.json.encode(about)
    text += b" " * (-len(text) % 4)  # so that the numbers behind it lie where a browser can read them in place
    parts = [len(text).to_bytes(4, "little"), text]
    for picture in pictures:
        parts.append(np.round(picture.segments * 32767).astype("<i2").tobytes())
        parts.append(picture.colours.tobytes())
        parts.append(np.clip(picture.brightness * 100, 0, 255).astype(np.uint8).tobytes())
    return b"".join(parts)


@dataclass(frozen=True)
class Decision:
    """What a player does, and why, as far as he can tell."""

    commands: Commands  # (games, 3)
    values: Values | None = None
    thoughts: "Thoughts | None" = None

    def attention(self, games: int) -> Values | None:
        """What the player attends to, (games, lanes, slots), where it is told and shown in so many games."""
        return self.thoughts.attention if self.thoughts and games <= EXPLAINED else None


class WatchedPlayer:
    """A player by name. Where it is a run in training, its weights are read again whenever newer ones were saved."""

    def __init__(self, name: str, runs: Path | None, called: str = "") -> None:
        """`called` is how to show one whose weights never change, such as the copy in a league."""
        self.name, self._runs = name, runs
        self.note = ""  # what a viewer should know about who really plays
        self._path: Path | None = None
        self._version = self._next_look = 0.0
        if name in CHAMPIONS and not _weights(name, runs):
            self.note = f"This copy of Protege holds no weights for the {name}: the teacher plays."
            self.name = name = "teacher"
        self.control = {"random": "random"}.get(name, "teacher" if name in BUILT_IN else "pupil")
        self.player: Player = self._load()
        if called:
            self.name, self._path = called, None

    def decide(self, frames: Frames) -> Decision:
        explain = getattr(self.player, "explain", None)
        if explain is not None:
            thoughts = explain(frames.observation)
            return Decision(ACTIONS[thoughts.values.argmax(1)], thoughts.values, thoughts)
        valued = getattr(self.player, "values", None)
        if valued is None:
            return Decision(to_commands(self.player.act(frames), len(frames.score)))
        values = valued(frames.observation)
        return Decision(ACTIONS[values.argmax(1)], values)

    def refresh(self) -> None:
        """Take newer weights, if there are any; a file that cannot be used leaves the old ones playing."""
        if self._path is None or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + RELOAD_SECONDS
        try:
            if _weights(self.name, self._runs) != self._path or self._path.stat().st_mtime != self._version:
                self.player = self._load()
                self.note = ""
        except (ProtegeError, OSError) as problem:
            self.note = f"These are old weights, newer ones cannot be used: {problem}"

    def _load(self) -> Player:
        self._path = _weights(self.name, self._runs)
        if self._path is None:
            return find_player(self.name, self._runs)
        self._version = self._path.stat().st_mtime
        player = find_player(str(self._path), self._runs)
        import torch  # after the player, which needs it anyway: pages without a pupil start without it

        torch.set_num_threads(1)  # a few games are too little work to share, and a training wants the other cores
        return player


def _weights(name: str, runs: Path | None) -> Path | None:
    """The file that holds a player's weights now: while a run is trained its newest ones, afterwards its best."""
    if name in BUILT_IN or ":" in name:
        return None
    path = checkpoint_of(name, runs)
    try:
        run = open_run(name, runs)
    except RunError:
        return path if path is not None and path.is_file() else None
    return run.last if run.is_training() and run.last.is_file() else path


def _say(frames: Frames, g: int, command: Commands, decided: Decision, control: str) -> Told:
    said: Told = {"control": control, "action": command.tolist(), "advice": frames.advice[g].tolist()}
    if decided.values is not None:
        values, thoughts = decided.values[g], decided.thoughts
        best = np.argsort(values)[::-1][:TOP]
        said["values"] = [[*ACTIONS[a].tolist(), round(float(values[a]), 4)] for a in best]
        said["range"] = [round(float(values.min()), 4), round(float(values.max()), 4)]
        if thoughts is not None and g == 0:  # only the first game's reasons are shown
            said["probabilities"] = np.round(1000 * thoughts.probabilities[g, best]).astype(int).tolist()
            said["support"] = thoughts.support[[0, -1]].tolist()
    return said


def score_of(row: Row) -> int:
    """The score as the machine shows it and as its table of high scores counts it: with the start bonus."""
    return int(ram.get_word(row, ram.SCORE) + ram.get_word(row, ram.START_BONUS))


def figures_of(row: Row) -> Told:
    level, lives, lane = (int(row[address]) for address in (ram.LEVEL_INDEX, ram.LIVES, ram.PLAYER_LANE))
    told = {"score": score_of(row), "level": level + 1, "lives": lives, "lane": lane}
    return told | {"frame": int(ram.get_word(row, ram.FRAMES)), "over": bool(sim.is_over(row))}


class Table:
    """Some games, played one tick at a time by whoever sits at them."""

    def __init__(self, rows: ram.Rows) -> None:
        self.games = Games(rows)
        self.said: list[Told] = [{"control": ""} for _ in range(len(rows))]
        self.attention: dict[int, Values] = {}  # of the games in which it is told, lanes to slots

    def tick(
        self, player: WatchedPlayer, which: Sequence[int], given: Mapping[int, Command], giver: str = "you"
    ) -> Commands:
        """One tick of games `which`: the player decides, except where a command is given; returns what was done."""
        rows = self.games.rows
        commands = np.zeros((len(rows), 3), np.int8)
        asked = np.array([g for g in which if ram.in_control(rows[g])], np.int64)
        if len(asked):
            self.games.put(asked, rows[asked])
            frames = self.games.frames
            decided = player.decide(frames)
            attention = decided.attention(len(rows))
            for g in asked.tolist():
                commands[g] = given.get(g, decided.commands[g])
                self.said[g] = _say(frames, g, commands[g], decided, giver if g in given else player.control)
                if attention is not None:
                    self.attention[g] = attention[g]
        for g in which:
            if not sim.is_over(rows[g]):
                sim.step_game(rows[g], commands[g, 0] != 0, commands[g, 1] != 0, False, int(commands[g, 2]))
        return commands

    def message(self, drawn: Sequence[int], **more: Any) -> bytes:
        return message(list(self.games.rows), self.said, drawn, self.attention, **more)


def message(
    rows: Sequence[Row], said: Sequence[Told], drawn: Sequence[int], attention: Mapping[int, Values], **more: Any
) -> bytes:
    """What is told of games, with pictures of those `drawn` and of what their players attend to."""
    told = [figures_of(row) | words | {"lines": 0} for row, words in zip(rows, said)]
    pictures = []
    for g in drawn:
        pictures.append(drawing.vectors(rows[g]))
        told[g]["lines"] = len(pictures[-1].segments)
        if g in attention:
            pictures.append(drawing.gaze(rows[g], attention[g]))
            told[g]["gaze"] = len(pictures[-1].segments)
    return pack({"games": told, **more}, pictures)


class _Unsteered:
    rate = RATE

    def hear(self, words: Mapping[str, Any]) -> None:
        """Nobody steers these."""


class LiveGames(_Unsteered):
    """A player's games, each followed by the next; nobody steers, so any number of viewers may share it."""

    def __init__(self, player: WatchedPlayer, *, games: int = 1, level: int = 1, seed: int | None = None) -> None:
        self.player, self.level, self.started = player, level, games
        self.seed = time.time_ns() % 2**31 if seed is None else seed
        self.table = Table(starts(games, seed=self.seed, level=level, domain=EVALUATION))
        self.over_for = [0] * games
        self.turn = 0

    def tick(self) -> bytes:
        rows = self.table.games.rows
        self.player.refresh()
        self.table.tick(self.player, range(len(rows)), {})
        for g, row in enumerate(rows):
            self.over_for[g] = self.over_for[g] + 1 if sim.is_over(row) else 0
            if self.over_for[g] > GAME_OVER_TICKS:
                fresh = starts(1, seed=self.seed, level=self.level, domain=EVALUATION, first=self.started)
                self.table.games.put(np.array([g]), fresh)
                self.started += 1
        drawn = sorted({(self.turn + i) % len(rows) for i in range(DRAWN)})
        self.turn = (self.turn + DRAWN) % len(rows)
        return self.table.message(drawn, player=self.player.name, note=self.player.note)


class ArcadeGames(_Unsteered):
    """The games of an arcade server's clients: drawn from what they send, with what the server answered.

    Values and the like come from the player's weights as they were last saved, so they may be a minute older than those
    that chose the move.
    """

    def __init__(self, folder: Path, server: str, find: Callable[[str], WatchedPlayer], *, games: int = 1) -> None:
        self.folder, self.server, self.find, self.games = folder, server, find, games
        self.arcade: Arcade | None = None
        self.player: WatchedPlayer | None = None
        self.next_look = 0.0  # for a player that could not be found yet
        self.best: dict[int, int] = {}  # by place: the highest score seen
        self.turn = 0

    def tick(self) -> bytes:
        if self.arcade is None or not self.arcade.is_alive():
            self.arcade = next((found for found in arcades(self.folder) if found.server == self.server), None)
            self.player, self.next_look = None, 0.0  # it may be another one than before
        if self.arcade is None:
            return pack({"games": [], "note": f"No arcade server is at work at port {self.server}."}, [])
        everybody = self.arcade.screens()
        screens = everybody[: self.games]
        note = "No client is connected."
        if screens:
            first, packet = screens[0], screens[0]["packet"]
            doing = f"{activity(int(packet['state']), int(packet['mode']))}, {first['rate']:,.0f} frames/s"
            note = f"{len(everybody)} connected, first {_name(first) or 'one without a name'}: {doing}"
        frames, decided = self._think(screens)
        attention = decided.attention(len(screens))
        rows: list[Row] = []
        said: list[Told] = []
        shown: dict[int, Values] = {}
        for g, screen in enumerate(screens):
            place, score, control = int(screen["place"]), int(screen["packet"]["score"]), screen["control"].decode()
            self.best[place] = max(score, self.best.get(place, 0))
            rows.append(memory_of(screen, self.best[place]))
            said.append({"control": "", "client": _name(screen)})
            if control:
                said[g] |= _say(frames, g, screen["command"], decided, control)
                shown |= {} if attention is None else {g: attention[g]}
        drawn = [g for g in range(len(screens)) if (g - self.turn) % len(screens) < DRAWN]
        self.turn = (self.turn + DRAWN) % max(1, len(screens))
        return message(rows, said, drawn, shown, player=self.arcade.player, note=note)

    def _think(self, screens: Sequence[Screen]) -> tuple[Frames, Decision]:
        """What the player makes of the games, as far as it can be asked."""
        assert self.arcade is not None, "looked at"
        values = np.array([screen["packet"]["values"] for screen in screens], np.float32).reshape(-1, VALUES)
        advice = ACTIONS[np.array([screen["client"]["advice"] for screen in screens], np.int64)]
        unknown: dict[str, Any] = {name: np.zeros(len(screens)) for name in Frames._fields}
        frames = Frames(**unknown | {"observation": values.clip(-1, 1), "advice": advice})
        if self.player is None and time.monotonic() >= self.next_look:
            self.next_look = time.monotonic() + RELOAD_SECONDS
            with suppress(ProtegeError):  # a run without weights yet, or a player that only the server knows
                self.player = self.find(self.arcade.player)
        if self.player is None or self.player.control != "pupil" or not screens:
            return frames, Decision(frames.advice)
        self.player.refresh()
        return frames, self.player.decide(frames)


def _name(screen: Screen) -> str:
    return str(screen["name"].decode(errors="replace"))  # may have been cut within a letter


class Film:
    """One game to be paused, stepped and wound to and fro: recorded, or one that the player plays for us now.

    It is played ahead of the viewer, a little in every tick, and kept as the commands given and a copy of the game now
    and then; any moment is played again from the copy before it.
    """

    rate = RATE
    APART: Final = 400  # ticks between copies
    AHEAD_SECONDS: Final = 0.012  # of each tick spent on playing ahead
    MOST_TICKS: Final = 400_000

    def __init__(self, player: WatchedPlayer, start: Row, moves: Moves | None = None) -> None:
        """`moves` are those of a recording; the player then only says what he thinks of them."""
        self.player, self.moves = player, moves
        self.ahead, self.shown = Table(start[None]), Table(start[None])
        self.commands: list[Command] = []
        self.copies = [start.copy()]
        self.at, self.speed, self.paused = 0, 1.0, False
        self._owed = 0.0  # ticks, less than one, that a fractional speed has not shown yet

    def tick(self) -> bytes:
        until = time.monotonic() + self.AHEAD_SECONDS
        while not self.complete() and time.monotonic() < until:
            self._play_ahead()
        if not self.paused:
            whole, self._owed = divmod(self._owed + self.speed, 1)
            self.go_to(self.at + int(whole))
        told: dict[str, Any] = {"tick": self.at, "ticks": len(self.commands), "complete": self.complete()}
        told |= {"paused": self.paused, "speed": self.speed}
        return self.shown.message([0], player=self.player.name, note=self.player.note, film=told)

    def complete(self) -> bool:
        row = self.ahead.games.rows[0]
        recorded = self.moves is None or ram.get_word(row, ram.FRAMES) < len(self.moves) or not ram.in_control(row)
        return bool(sim.is_over(row)) or len(self.commands) >= self.MOST_TICKS or not recorded

    def go_to(self, tick: int) -> None:
        """Show the game as it stood after so many ticks, as far as it has been played."""
        tick = max(0, min(tick, len(self.commands)))
        row = self.shown.games.rows[0]
        if not self.at <= tick <= self.at + self.APART:
            row[:] = self.copies[tick // self.APART]
            self.at = tick // self.APART * self.APART
        while self.at < tick:
            fire, zap, spinner = self.commands[self.at]
            self.at += 1
            if self.at == tick:  # this one is seen, so it is also explained
                self.shown.tick(self.player, [0], {0: self.commands[tick - 1]}, self.player.control)
            else:
                sim.step_game(row, fire != 0, zap != 0, False, spinner)

    def hear(self, words: Mapping[str, Any]) -> None:
        """`pause`, `step` (ticks to and fro), `seek` (a tick) and `speed`."""
        match words:
            case {"pause": bool(paused)}:
                self.paused = paused
            case {"step": int(ticks)}:
                self.paused = True
                self.go_to(self.at + max(-1000, min(1000, ticks)))
            case {"seek": int(tick)}:
                self.go_to(tick)
            case {"speed": int() | float() as speed}:
                self.speed = max(0.1, min(16.0, float(speed)))

    def _play_ahead(self) -> None:
        row = self.ahead.games.rows[0]
        if self.moves is None:
            fire, zap, spinner = self.ahead.tick(self.player, [0], {})[0].tolist()
        else:
            move = self.moves[int(ram.get_word(row, ram.FRAMES))] if ram.in_control(row) else 0
            fire, zap, spinner = ACTIONS[move].tolist()
            sim.step_game(row, fire != 0, zap != 0, False, spinner)
        self.commands.append((fire, zap, spinner))
        if len(self.commands) % self.APART == 0:
            self.copies.append(row.copy())
