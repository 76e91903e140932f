"""Tempest for people: a game at the page beside a player who is dealt the same one, and the table of high scores."""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from protege import ProtegeError
from protege.games.tempest.page.live import RATE, Command, Table, WatchedPlayer, figures_of, score_of
from protege.games.tempest.rules import sim
from protege.games.tempest.rules.levels import LAST_LEVEL
from protege.games.tempest.task.env import starts
from protege.runs.files import replacing
from protege.seeds import EVALUATION


class Best(msgspec.Struct, frozen=True):
    """A line of the table of high scores."""

    initials: str
    score: int
    level: int
    start: int  # the level the game began at
    when: str


class HighScores:
    """The ten best games people played here, in a file of their own."""

    MOST: Final = 10

    def __init__(self, path: Path) -> None:
        self.path, self._turn = path, threading.Lock()

    def best(self) -> list[Best]:
        """The table, best first; empty before the first game."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=list[Best])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as problem:
            raise ProtegeError(f"the high scores in {self.path} cannot be read: {problem}") from problem

    def place(self, score: int) -> int | None:
        """The place from 1 that a score would take, behind equal ones; None if it is not among the best."""
        place = 1 + sum(1 for line in self.best() if line.score >= score)
        return place if score > 0 and place <= self.MOST else None

    def add(self, line: Best) -> None:
        with self._turn:
            table = sorted([*self.best(), line], key=lambda best: -best.score)[: self.MOST]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as draft:
                draft.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=2) + b"\n")


class HumanGame:
    """A person's game and, beside it, a player's on the same seed.

    It waits for `start`. The controls are `turn` (-1, 0, 1 as long as a key is held, 1 to the right), `spin` (what
    mouse or wheel turned, added up until the next tick), `fire` and `zap`; `pause`, and after a good game `initials`.
    """

    rate = RATE
    MOST_SPIN: Final = 31  # the machine takes no more in a tick
    HELD: Final = (8, 8, 8, 10, 12, 14)  # spin of a held key, tick by tick: a tap is about a lane, of 16

    def __init__(self, rival: WatchedPlayer, scores: HighScores) -> None:
        self.rival, self.scores = rival, scores
        self.seed, self.level = 1, 1
        self.table = Table(starts(2, level=1))
        self.running = self.paused = self.over = False
        self.place: int | None = None  # among the best, until the initials are entered
        self.turn, self.held, self.spin = 0, 0, 0.0
        self.down = {"fire": False, "zap": False}
        self.pressed = {"fire": False, "zap": False}  # since the last tick, however short
        self.tapped = 0  # a key that was let go before the next tick still turns

    def tick(self) -> bytes:
        if self.running and not self.paused:
            self.table.tick(self.rival, (0, 1), {0: self._command()})
            if sim.is_over(self.table.games.rows[0]) and not self.over:
                self.over = True
                self.place = self.scores.place(score_of(self.table.games.rows[0]))
        told = {"running": self.running, "paused": self.paused, "seed": self.seed, "place": self.place}
        return self.table.message([0, 1], player=self.rival.name, note=self.rival.note, human=told)

    def hear(self, words: Mapping[str, Any]) -> None:
        match words:
            case {"start": {"level": int(level), "seed": int(seed)}}:
                self._start(level, seed)
            case {"pause": bool(paused)}:
                self.paused = paused
            case {"initials": str(initials)}:
                self._enter(initials)
            case _:
                self._steer(words)

    def _start(self, level: int, seed: int) -> None:
        self.level, self.seed = max(1, min(LAST_LEVEL, level)), seed % 2**31
        row = starts(1, seed=self.seed, level=self.level, domain=EVALUATION)[0]
        self.table = Table(np.stack([row, row]))
        self.running, self.paused, self.over, self.place = True, False, False, None
        self.turn, self.held, self.tapped, self.spin = 0, 0, 0, 0.0

    def _steer(self, words: Mapping[str, Any]) -> None:
        for button in self.down:
            if isinstance(words.get(button), bool):
                self.down[button] = words[button]
                self.pressed[button] |= words[button]
        turn, spin = words.get("turn"), words.get("spin")
        if turn in (-1, 0, 1) and turn != self.turn:
            self.turn, self.held = turn, 0
            self.tapped = turn or self.tapped
        if isinstance(spin, int | float) and abs(spin) <= 10_000:
            self.spin = max(-200.0, min(200.0, self.spin + spin))

    def _command(self) -> Command:
        """What to play now. To the right is to higher lanes, and those the machine reaches by turning below zero."""
        turn = self.turn or self.tapped
        by_key = turn * self.HELD[min(self.held, len(self.HELD) - 1)]
        self.held += turn != 0
        wanted = max(-self.MOST_SPIN, min(self.MOST_SPIN, by_key + int(self.spin)))
        self.spin -= wanted - by_key  # what was too much for one tick turns in the next ones
        fire, zap = (int(self.down[button] or self.pressed[button]) for button in ("fire", "zap"))
        self.tapped = 0
        self.pressed = dict.fromkeys(self.pressed, False)
        return fire, zap, -wanted

    def _enter(self, initials: str) -> None:
        if self.place is None:
            return
        self.place = None
        letters = "".join(c for c in initials.upper() if c.isascii() and (c.isalnum() or c in " .-"))[:3].ljust(3)
        figures = figures_of(self.table.games.rows[0])
        when = datetime.now(UTC).isoformat(timespec="seconds")
        self.scores.add(Best(letters, figures["score"], figures["level"], self.level, when))
