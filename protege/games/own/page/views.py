"""A player's episodes as pictures over the page's socket."""

import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.dashboard.live import Page, Tab
from protege.games.own.agents.players import Player, players_of, teacher_of
from protege.games.own.world.arena import Arena, World
from protege.runs.metrics import Metric, near
from protege.runs.run import Run, checked_name, list_runs, runs_folder
from protege.seeds import EVALUATION

RATE: Final = 30.0  # frames a second, unless the game has a rate of its own
SEED: Final = 3_000_000  # of what is watched, apart from evaluations


def png(picture: npt.NDArray[np.uint8]) -> bytes:
    """A picture (height, width, 3) as a PNG file, packed quickly."""
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], 1)  # each begins unfiltered

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + chunk(b"IEND", b"")


class Watched:
    """One game, frame by frame. A message is the length of a JSON text, the text, and a PNG file."""

    def __init__(self, world: World, player: Player, seed: int, rate: float):
        self.arena, self.player, self.rate = Arena(world, 1, EVALUATION, seed), player, rate
        self.last = 0.0  # return of the episode before
        self.paused = False

    def tick(self) -> bytes:
        arena = self.arena
        if not self.paused:
            arena.step(self.player.act(arena))
            for episode in arena.taken_episodes():
                self.last = episode.reward
        told = {"episode": int(arena.number[0]) + 1, "frame": int(arena.frame[0]), "return": float(arena.total[0])}
        text = json.dumps(told | {"last": self.last, "paused": self.paused}).encode()
        return struct.pack("<I", len(text)) + text + png(arena.render())

    def hear(self, words: Mapping[str, Any]) -> None:
        if isinstance(words.get("pause"), bool):
            self.paused = words["pause"]


class OwnViews:
    """Opens live views by settings as they come from a page's address, so nothing in them is trusted."""

    style: Sequence[Metric] = ()
    page = Page(Path(__file__).parent / "static", (Tab("live", "Live", "live.js"),), ("live.css",), "links.js")

    def __init__(
        self, name: str, worlds: Callable[..., World], runs: Path | None = None, more_players: Sequence[str] = ()
    ) -> None:
        self.name, self.worlds, self.runs, self.more_players = name, worlds, runs, tuple(more_players)

    def players(self) -> list[str]:
        """Who can be watched: whoever the command line named, then scripted players, then runs."""
        scripted = ["teacher"] * bool(self._teacher() or self.worlds("").teaches) + ["random"]
        trained = [run.name for run in reversed(list_runs(self.runs)) if run.game == self.name]
        ready = [name for name in trained if Run(runs_folder(self.runs) / name).all_checkpoints()]
        return list(dict.fromkeys([*self.more_players, *ready, *scripted]))

    def _teacher(self) -> str:
        return teacher_of(self.name, (), self.runs)

    def about(self) -> dict[str, Any]:
        return {"players": self.players()}

    def shared(self, kind: str) -> bool:
        return kind == "watch"

    def open(self, kind: str, settings: Mapping[str, str]) -> Watched:
        """The live view `watch`, of a player."""
        if kind != "watch":
            raise ProtegeError(f"there is no live view {kind!r}: expected watch")
        known = self.players()
        name = settings.get("player", known[0])
        if name not in known:
            raise ProtegeError(f"there is no player {checked_name(name)!r} here{near(name, known)}")
        world = self.worlds(self._teacher() if name == "teacher" else "", pictures=True)
        return Watched(world, players_of(world).find(name, self.runs), SEED, RATE)

    def file(self, settings: Mapping[str, str]) -> bytes:
        raise ProtegeError("there are no recordings here: a player is watched live")

    def high_scores(self) -> list[dict[str, Any]]:
        return []
