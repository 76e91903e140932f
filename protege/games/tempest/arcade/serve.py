"""Plays the clients of the arcade bridge with one player, without learning from it, and sums up their games."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from protege.games.tempest.agents.players import BUILT_IN, Player, score_figures
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, rehearse
from protege.games.tempest.arcade.streams import Decisions, Game, Places
from protege.games.tempest.task.env import Frames

ROW_S: Final = 30.0  # between lines that say how it goes


class _Playing(Agent):
    """The player at work."""

    def __init__(self, name: str, player: Player, tell: Callable[[str], None]):
        self.name, self.player, self.tell = name, player, tell
        self.games: list[Game] = []

    def control(self, actor: int) -> str:
        return "random" if self.name == "random" else "teacher" if self.name in BUILT_IN else "pupil"

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        return Decisions(self.player.act(frames), 0)

    def finish(self, game: Game) -> None:
        self.games.append(game)
        ending = f"{'cut after ' if game.truncated else ''}{game.frames:,} frames, client {game.client}"
        levels = f"level {game.start_level} to {game.level}"
        self.tell(f"game {len(self.games)}: {game.score:,} points, {levels}, {ending}")

    def note(self, text: str) -> None:
        self.tell(text)


def play_clients(
    name: str, player: Player, config: BridgeConfig, *, minutes: float = 0.0, games: int = 0,
    tell: Callable[[str], None] = print,
) -> dict[str, Any]:  # fmt: skip
    """Play whoever connects until the minutes are over, so many games have ended, or Ctrl-C; returns what came of it.

    Games that were running when a client came are played to their end, but do not count.
    """
    if "torch" in sys.modules:
        import torch

        from protege.games.tempest.agents.compiled import quick

        torch.set_num_threads(1)  # a few games are too little work to share
        player = quick(player)
    player.act(rehearse())  # so that the first client does not wait for compiled code
    playing = _Playing(name, player, tell)
    began = time.monotonic()
    with Bridge(playing, config) as bridge:
        tell(f"bridge: {config.host} port {bridge.port}, {name} plays up to {config.most_clients} clients")
        next_row, before = began + ROW_S, 0
        try:
            while bridge.is_alive() and not (games and len(playing.games) >= games):
                now = time.monotonic()
                if minutes and now - began >= 60 * minutes:
                    break
                if now >= next_row:
                    rate, before = (bridge.frames - before) / (now - next_row + ROW_S), bridge.frames
                    next_row = now + ROW_S
                    clients = bridge.clients()
                    latency = max((client.latency_ms for client in clients), default=0.0)
                    tell(f"{len(clients)} clients, {rate:,.0f} frames/s, replies within {latency:.1f} ms")
                time.sleep(0.1)
        except KeyboardInterrupt:
            tell("stopped")
    seconds = time.monotonic() - began
    counted = playing.games[:games] if games else playing.games
    return summary(name, counted) | {"frames_per_s": bridge.frames / seconds, "seconds": seconds}


def summary(name: str, games: list[Game]) -> dict[str, Any]:
    """A row of results, with the keys of an evaluation as far as clients can tell; most of them need a game."""
    found: dict[str, Any] = {"player": name, "games": len(games)}
    if not games:
        return found
    score, level = np.array([game.score for game in games], np.float64), np.array([game.level for game in games])
    return found | {
        "level": Counter(game.start_level for game in games).most_common(1)[0][0],
        **score_figures(score, level, sum(game.deaths for game in games)),
        "frames_mean": float(np.mean([game.frames for game in games])),
        "truncated": sum(game.truncated for game in games),
        "start_bonus_mean": float(np.mean([game.start_bonus for game in games])),
    }
