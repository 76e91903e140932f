"""How a pupil practises on arcade clients: the bridge asks it for moves, and what came of them is learned from.

Everything else is the practice with a memory: schedules, updates, exams on the simulator, checkpoints. A run can move
from the simulator to cabinets and back.
"""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, step_back
from protege.games.tempest.arcade.streams import Game, Places, Steps
from protege.games.tempest.task.env import Frames
from protege.games.tempest.task.rewards import learned_reward
from protege.games.tempest.training.collect import Episode
from protege.games.tempest.training.config import TempestConfig
from protege.games.tempest.training.practice import Piece
from protege.games.tempest.training.rainbow import Behaviour, RainbowPractice
from protege.learn.replay import Actor
from protege.seeds import Purpose, random_stream
from protege.train.controls import Report

PIECE_FRAMES: Final = 256  # a piece ends with so many frames
PIECE_SECONDS: Final = 0.25  # or after so long
MOST_UPDATES: Final = 16  # from one piece: cabinets do not wait, so a learner that cannot keep up makes fewer
DUE: Final = 4  # beside the number of who chose a move: a penalty is due with its reward


class _Cabinets(Agent):
    """Plays the clients, in the bridge's thread, and keeps what came of it until it is fetched."""

    def __init__(self, practice: "CabinetPractice", places: int):
        self.practice, self.name = practice, practice.player
        self.behaviour = Behaviour(practice.own, places, random_stream(practice.config.seed, Purpose.ARCADE))
        self.arrived = threading.Condition()
        self.steps: list[Steps] = []
        self.frames = 0
        self.episodes: list[Episode] = []
        self.life_frames, self.life_reward = np.zeros(places, np.int64), np.zeros(places)
        self.levels = np.ones(places, np.int64)
        self.acting_s = 0.0

    def control(self, actor: int) -> str:
        return Actor(actor & (DUE - 1)).name.lower()

    def decide(self, frames: Frames, clients: Places) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        began, practice, scheduled = time.thread_time(), self.practice, self.practice.scheduled()
        moves, actors, due = self.behaviour.decide(
            frames, practice.learner.acting, places=clients,
            epsilon=practice.switches.epsilon(scheduled), teacher=practice.switches.teacher(scheduled),
        )  # fmt: skip
        self.levels[clients] = frames.level
        self.acting_s += time.thread_time() - began
        return moves, actors + np.int8(DUE) * (due != 0)

    def learn(self, steps: Steps) -> None:
        played = ~steps.truncated
        clients = steps.clients[played]
        self.life_frames[clients] += 1
        self.life_reward[clients] += steps.objectives[played]
        lost = steps.clients[steps.terminated]
        with self.arrived:
            for c in lost.tolist():
                self.episodes.append(Episode(int(self.life_frames[c]), float(self.life_reward[c]), int(self.levels[c])))
            self.steps.append(steps)
            self.frames += int(played.sum())
            if self.frames >= PIECE_FRAMES:
                self.arrived.notify()
        over = steps.clients[steps.terminated | steps.truncated]
        self.life_frames[over], self.life_reward[over] = 0, 0.0
        self.behaviour.owed[over] = 0  # nobody pays for a life that is over, or for whoever was here before

    def finish(self, game: Game) -> None:
        ending = "cut" if game.truncated else "over"
        self.practice.tell(
            f"client {game.client}: game {ending}, {game.score:,} points, level {game.start_level} to {game.level}"
        )

    def save(self) -> None:
        self.practice.ask_for_save()

    def note(self, text: str) -> None:
        self.practice.tell(text)

    def fetch(self) -> Piece:
        """What has come in since the last time, or comes in now."""
        with self.arrived:
            self.arrived.wait_for(lambda: self.frames >= PIECE_FRAMES, PIECE_SECONDS)
            piece = Piece(self.steps, self.frames, {}, self.episodes, 0.0, self.acting_s)
            self.steps, self.frames, self.episodes, self.acting_s = [], 0, [], 0.0
        return piece


class CabinetPractice(RainbowPractice):
    """Distributional Q-learning from whoever connects to the bridge."""

    def __init__(
        self, config: TempestConfig, threads: int, replay_path: Path, listening: BridgeConfig,
        tell: Callable[[str], None], ask_for_save: Callable[[], None], player: str = "",
    ):  # fmt: skip
        super().__init__(config, threads, replay_path)
        self.switches.reports["clients"] = self._clients
        self.listening, self.tell, self.ask_for_save, self.player = listening, tell, ask_for_save, player
        self.cabinets = _Cabinets(self, listening.most_clients)
        self.bridge: Bridge | None = None

    def start(self) -> None:
        self.bridge = Bridge(self.cabinets, self.listening)
        step_back()  # whoever calls this learns
        self.tell(f"bridge: {self.listening.host} port {self.bridge.port}, up to {self.listening.most_clients} clients")

    def empty(self) -> list[Steps]:
        return []

    def play(self, content: Any) -> Piece:
        assert self.bridge is not None, "started"
        if not self.bridge.is_alive():
            self.bridge.close()  # raises what ended it
        return self.cabinets.fetch()

    def remaining(self, ahead: list[Piece]) -> list[Piece]:
        assert self.bridge is not None, "started"
        self.bridge.close()
        return [*ahead, self.cabinets.fetch()]

    def _due(self, frames: int) -> int:
        return min(MOST_UPDATES, super()._due(frames))

    def _store(self, piece: Piece) -> None:
        for steps in piece.content:
            due = np.where(steps.actors & DUE, np.float32(self.own.zap_penalty), np.float32(0))
            rewards = learned_reward(steps.objectives, steps.rewards, self.config.shaping) + due
            self.replay.add(
                steps.clients, steps.observations, steps.actions, rewards, steps.terminated, steps.truncated,
                np.maximum(steps.actors & (DUE - 1), 1), steps.advice,
            )  # fmt: skip
        self.frames += piece.frames

    def figures(self) -> dict[str, float]:
        assert self.bridge is not None, "started"
        clients = self.bridge.clients()
        refused = sum(self.bridge.tallies[fault] for fault in ("wrong length", *wire.FAULTS))
        slowest = max((client.latency_ms for client in clients), default=0.0)
        return super().figures() | {"clients": len(clients), "latency_ms": slowest, "refused": refused}

    def _clients(self) -> Report:
        assert self.bridge is not None, "started"
        rows = [
            [
                f"{client.place}", client.name or "-", client.address, f"{client.seconds / 60:,.0f}",
                f"{client.frames_per_s:,.0f}", f"{client.latency_ms:.1f}", f"{client.frames:,}", f"{client.refused:,}",
                client.activity, f"{client.level}", f"{client.score:,}",
            ]
            for client in self.bridge.clients()
        ]  # fmt: skip
        columns = "client name address minutes frames/s ms frames refused now level score".split()
        so_far = ", ".join(f"{what} {count:,}" for what, count in self.bridge.tallies.copy().items())
        return Report(f"{len(rows)} clients; so far: {so_far or 'nobody came'}", columns, rows)

    def state(self) -> dict[str, Any]:
        return super().state() | {"games": None, "owed": None}

    def _restore_games(self, state: Mapping[str, Any]) -> None:
        self.games.top_level = state["top_level"]
        self.replay.abandon()
        self.start()

    def close(self) -> None:
        if self.bridge is not None:
            self.bridge.close()
        super().close()

    def describe(self) -> dict[str, str]:
        described = super().describe()
        described["learner"] = described["learner"].replace(f"{self.own.games} games, ", "")
        return {"game": "Tempest on arcade clients; exams on the simulator"} | described
