"""How a pupil practises with a memory: who chooses each move, what is stored, and when an update is due.

Some games advance together; of each frame the teacher, chance or the network decides (`Behaviour`). What they did and
what came of it goes into the replay, and the Rainbow learner makes as many updates as the frames allow. Schedules count
frames; in a run with a budget they are stretched so that the whole budget counts as `schedule_frames`.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from protege.games.tempest.agents.attention import (
    CHECKPOINT_KIND,
    FACTORS,
    RainbowPupil,
    attention_report,
    build_network,
    shape_of,
)
from protege.games.tempest.rules import ram
from protege.games.tempest.task.env import Frames
from protege.games.tempest.task.observation import VALUES
from protege.games.tempest.task.packing import PACKING
from protege.games.tempest.task.teacher import SPINNER_LEVELS
from protege.games.tempest.training.collect import TrainingGames, joint_actions, random_moves
from protege.games.tempest.training.config import RainbowTraining, TempestConfig, device_of
from protege.games.tempest.training.practice import Piece
from protege.learn import replay_file
from protege.learn.rainbow import QNetwork, Rainbow
from protege.learn.replay import Actor, Replay, ReplayError
from protege.learn.schedules import linear
from protege.learn.state import restore_generator
from protege.runs import checkpoints
from protege.train.controls import Report, Scheduled, Switches

WARMING_ROUND: Final = 4  # updates between two looks at everything else while the memory holds teacher's frames alone
STATE_SCALE: Final = 36  # of the first of the 195 values, the machine's state
REPORT_FRAMES: Final = 256  # looked at for an attention report
SAVING_PAUSE: Final = 10.0  # times as long as the memory's last save took, it is not saved again

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Behaviour:
    """Chooses moves: the teacher's, at random, or the network's best; and keeps back zaps that the gate stops."""

    def __init__(self, config: RainbowTraining, places: int, random: np.random.Generator):
        self.config, self.random = config, random
        self.owed = np.zeros(places, np.float32)  # reward for a zap that was stopped, due with the next frame

    def decide(
        self, frames: Frames, network: QNetwork, *, epsilon: float, teacher: float, places: Ints | None = None
    ) -> tuple[Ints, npt.NDArray[np.int8], Floats]:
        """Moves and who chose them; and what rewards of these frames must be changed by."""
        c, count = self.config, len(frames.observation)
        zoom = np.rint(frames.observation[:, 0] * STATE_SCALE) == ram.ZOOM
        chance = self.random.random((3, count))
        by_teacher = chance[0] < teacher * np.where(zoom, c.zoom_teacher, 1.0)
        at_random = ~by_teacher & (chance[1] < epsilon * np.where(zoom, c.zoom_epsilon, 1.0))
        moves = joint_actions(frames.advice)
        moves[at_random] = random_moves(self.random, int(at_random.sum()))
        own = np.flatnonzero(~by_teacher & ~at_random)
        if len(own):
            with torch.inference_mode():
                seen = torch.from_numpy(frames.observation[own]).to(network.support.device)
                moves[own] = network.expected(network(seen)).argmax(1).cpu().numpy()
        zaps = ~by_teacher & (moves // len(SPINNER_LEVELS) % 2 == 1)
        stopped = zaps & (chance[2] >= c.zap_gate)
        moves[stopped] -= len(SPINNER_LEVELS)
        where = np.arange(count) if places is None else places
        due = self.owed[where].copy()
        self.owed[where] = np.where(stopped, np.float32(c.zap_penalty), np.float32(0))
        actors = np.where(by_teacher, Actor.TEACHER, np.where(at_random, Actor.RANDOM, Actor.PUPIL)).astype(np.int8)
        return moves, actors, due


@dataclass
class Slice:
    """Some frames of all games; arrays are (frames, games, ...)."""

    observation: Floats
    action: Ints
    reward: Floats
    terminated: npt.NDArray[np.bool_]
    actor: npt.NDArray[np.int8]
    advice: Ints


class RainbowPractice:
    """Distributional Q-learning from a prioritised memory."""

    kind: Final = CHECKPOINT_KIND

    def __init__(self, config: TempestConfig, threads: int, replay_path: Path):
        self.config, self.own, self.replay_path = config, config.rainbow, replay_path
        c = self.own
        reports: dict[str, Callable[[], Report | str]] = {
            "replay": self._contents,
            "flush": self._flush,
        }
        if c.network.attention:
            reports["attention"] = self._attention
        self.switches = Switches(c.learner.learning_rate, reports, pulse_from=c.pulse_from or None)
        self.frames = 0
        self.position = 0  # frames as the schedules count them
        self.trailing = 1.0  # what the pupil lacks of the teacher's score, as a share
        self.learning_s = self.acting_s = self.bc_weight = 0.0
        torch.manual_seed(config.seed)
        network = replace(c.network, visible_only=c.network.visible_only or config.visible_only)
        self.described = shape_of(network, c.learner)
        self.device = device_of(config)
        fresh = build_network(self.described).to(self.device)
        self.learner = Rainbow(fresh, c.learner, factors=FACTORS, threads=threads)
        self.replay = Replay(PACKING, c.replay)
        self.drawing = np.random.default_rng([config.seed, 2])
        self.games = TrainingGames(c.games, config.starts, seed=config.seed, shaping=config.shaping)
        self.behaviour = Behaviour(c, c.games, self.games.random)
        self.after: dict[str, Any] | None = None
        self.saving: threading.Thread | None = None  # the memory, in the background
        self.next_saving = 0.0  # by the clock, unless somebody waits for it
        self.unsaved = ""  # why the memory could not be saved, until somebody is told
        self.credit = 0.0  # part of an update that frames so far allow

    @property
    def updates(self) -> int:
        """Made so far."""
        return self.learner.updates

    def start(self) -> None:
        self.games.warm_up()

    def empty(self) -> Any:
        t, n = self.own.piece, self.own.games
        return Slice(
            observation=np.zeros((t, n, VALUES), np.float32),
            action=np.zeros((t, n), np.int64),
            reward=np.zeros((t, n), np.float32),
            terminated=np.zeros((t, n), np.bool_),
            actor=np.zeros((t, n), np.int8),
            advice=np.zeros((t, n), np.int64),
        )

    @property
    def top_level(self) -> int:
        return self.games.top_level

    def scheduled(self) -> Scheduled:
        c = self.own
        epsilon = linear(self.position, c.epsilon, c.final_epsilon, c.epsilon_frames)
        if self.frames < c.warm_frames:
            teacher = 1.0
        elif c.teacher_by == "frames":
            teacher = linear(self.position, c.teacher, c.final_teacher, c.teacher_frames)
        else:
            teacher = c.final_teacher + (c.teacher - c.final_teacher) * self.trailing
        return Scheduled(self.frames, epsilon, teacher)

    def _filled(self) -> bool:
        """There is enough in the memory to learn from."""
        return len(self.replay) >= max(self.own.learner.minimum_fill, self.own.learner.batch)

    def _warming(self) -> bool:
        """The teacher's frames are there, and not all updates from them alone have been made."""
        c = self.own
        wanted = self.frames >= c.warm_frames and self.updates < c.warm_updates
        return wanted and self.switches.learning and self._filled()

    def play(self, content: Slice) -> Piece:
        games, simulating, began = self.games, 0.0, time.thread_time()
        if self._warming():
            return Piece(content, 0, games.state(), [], 0.0, 0.0)
        scheduled, network = self.scheduled(), self.learner.acting
        epsilon, teacher = self.switches.epsilon(scheduled), self.switches.teacher(scheduled)
        games.remember()
        for t in range(self.own.piece):
            content.observation[t] = games.frames.observation
            content.advice[t] = joint_actions(games.frames.advice)
            moves, actors, due = self.behaviour.decide(games.frames, network, epsilon=epsilon, teacher=teacher)
            content.action[t], content.actor[t] = moves, actors
            then = time.thread_time()
            frames = games.step(moves)
            simulating += time.thread_time() - then
            content.reward[t] = games.rewards() + due
            content.terminated[t] = frames.terminated
            self.behaviour.owed[frames.terminated | frames.over] = 0  # nobody pays for a life that is over
            games.replace_lost()
        acting = time.thread_time() - began - simulating
        frames_played = self.own.piece * self.own.games
        return Piece(content, frames_played, games.state(), games.taken_episodes(), simulating, acting)

    def remaining(self, ahead: list[Piece]) -> list[Piece]:
        return []  # a resumed run plays them again

    def learn(self, piece: Piece, done: float) -> dict[str, float]:
        c, learner = self.own, self.learner
        began = time.thread_time() + learner.others_cpu_s
        self._store(piece)
        stretched = c.schedule_frames and (self.config.minutes or self.config.frames)
        self.position = int(done * c.schedule_frames) if stretched else self.frames
        learner.set_progress(done if stretched else None, self.switches.rate_factor)
        bc_weight = c.learner.bc_weight_at(self.position)
        figures: dict[str, float] = {}
        for _ in range(self._due(piece.frames)):
            batch = self.replay.sample(c.learner.batch, c.learner.beta_at(self.position), self.drawing)
            figures, divergences = learner.update(batch, bc_weight)
            self.replay.update(batch.handle, divergences)
        self.learning_s += time.thread_time() + learner.others_cpu_s - began
        self.acting_s, self.bc_weight = piece.acting_s, bc_weight
        return figures

    def explain(self) -> str:
        return self.learner.explain()

    def figures(self) -> dict[str, float]:
        scheduled = self.scheduled()
        renamed = {"steps": "replay_size", "dropped": "dropped"}
        memory = {renamed.get(name, f"replay_{name}"): value for name, value in self.replay.figures().items()}
        return memory | {
            "epsilon": self.switches.epsilon(scheduled),
            "teacher_share": self.switches.teacher(scheduled),
            "bc_weight": self.bc_weight,
            "top_level": self.top_level,
            "replay_ratio": self.updates * self.own.learner.batch / max(1, self.frames),
            "inference_ms": 1000 * self.acting_s / self.own.piece,
        }

    def _store(self, piece: Piece) -> None:
        if not piece.frames:
            return
        s: Slice = piece.content
        streams = np.tile(np.arange(self.own.games), self.own.piece)
        cut = np.zeros(len(streams), np.bool_)  # games are only replaced where a life, an episode, has ended
        seen, actions, rewards, terminated, actors, advice = (
            array.reshape(-1, *array.shape[2:])
            for array in (s.observation, s.action, s.reward, s.terminated, s.actor, s.advice)
        )
        self.replay.add(streams, seen, actions, rewards, terminated, cut, actors, advice)
        self.frames += piece.frames
        self.after = piece.after

    def _due(self, frames: int) -> int:
        """Updates that these frames allow. What could not be made is not made up for later."""
        c = self.own.learner
        if not self.switches.learning or not self._filled():
            self.credit = 0.0
            return 0
        if self._warming():
            return WARMING_ROUND
        self.credit += frames * c.replay_ratio / c.batch
        due = int(self.credit)
        self.credit -= due
        return due

    def examined(self, exam: Mapping[str, Any], teacher: float) -> None:
        self.trailing = min(self.trailing, max(0.0, 1.0 - exam["score_mean"] / teacher))
        self.games.raise_top_level(exam["level_mean"])

    def pupil(self) -> RainbowPupil:
        return RainbowPupil(self.learner.averaged.frozen())

    def shape(self) -> dict[str, Any]:
        return {"shape": self.described}

    def tensors(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.learner.state()["weights"]
        return found

    def state(self) -> dict[str, Any]:
        return {
            "frames": self.frames,
            "position": self.position,
            "trailing": self.trailing,
            "credit": self.credit,
            "owed": self.behaviour.owed.copy(),
            "memory": self.replay.state()["end"],
            "top_level": self.games.top_level,
            "learner": {name: value for name, value in self.learner.state().items() if name != "weights"},
            "drawing": self.drawing.bit_generator.state,
            "games": self.games.state() if self.after is None else self.after,
        }

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        self.learner.restore({"weights": saved.tensors, **state["learner"]})
        self.frames, self.position = state["frames"], state["position"]
        self.trailing, self.credit = state["trailing"], state["credit"]
        restore_generator(self.drawing, state["drawing"])
        self._restore_games(state)
        if not self.replay_path.is_file():
            least = f"{self.own.learner.minimum_fill:,}"
            return [f"the memory was not saved: updates go on when it holds {least} steps again (--save-replay)"]
        replay_file.load(self.replay, self.replay_path)
        end = self.replay.state()["end"]
        apart = abs(end - state.get("memory", end))
        if apart or not self.config.deterministic:
            self.replay.abandon()  # these games did not go on as those in the memory did
        notes = [f"memory restored: {len(self.replay):,} steps"]
        if apart and self.config.deterministic:
            notes.append(f"it was saved {apart:,} steps from the checkpoint: the run does not go on bit for bit")
        return notes

    def _restore_games(self, state: Mapping[str, Any]) -> None:
        self.games.top_level = state["top_level"]
        if state["games"] is None:  # the run comes from arcade clients
            self.games.warm_up()
        else:
            self.games.restore(state["games"])
            self.behaviour.owed[:] = state["owed"]

    def save_memory(self, wait: bool) -> str:
        if not self.own.save_replay:
            return ""
        if wait:
            if self.saving is not None:
                self.saving.join()
            self._save()
        elif (self.saving is None or not self.saving.is_alive()) and time.monotonic() >= self.next_saving:
            self.saving = threading.Thread(target=self._save, name="replay", daemon=True)
            self.saving.start()
        told, self.unsaved = self.unsaved, ""
        return told

    def _save(self) -> None:
        began = time.monotonic()
        try:
            replay_file.save(self.replay, self.replay_path)
        except ReplayError as problem:
            self.unsaved = f"the memory was not saved: {problem}"
        now = time.monotonic()
        self.next_saving = now + SAVING_PAUSE * (now - began)

    def close(self) -> None:
        if self.saving is not None:
            self.saving.join()

    def memory_bytes(self) -> int:
        return self.replay.nbytes

    def disk_bytes(self) -> int:
        return self.replay.nbytes if self.own.save_replay else 0

    # --- what the console's keys show ---

    def _contents(self) -> Report:
        rows = [[name.replace("_", " "), f"{value:,.6g}"] for name, value in self.replay.figures().items()]
        return Report("memory", ["figure", "value"], rows)

    def _flush(self) -> str:
        forgotten = len(self.replay)
        self.replay.flush()
        return f"memory emptied: {forgotten:,} steps forgotten"

    def _attention(self) -> Report:
        random = np.random.default_rng(0)  # apart from the one that learning draws with
        if not len(self.replay):
            return Report("attention", ["the memory is empty"], [])
        seen = self.replay.sample(REPORT_FRAMES, 0.0, random).observation
        rows = [
            [row.name, "  ".join(f"{value:.2f}" for value in row.values) or "-", row.meaning]
            for row in attention_report(self.pupil().attention(seen))
        ]
        return Report(f"attention in {REPORT_FRAMES} frames of the memory", ["what", "values", "meaning"], rows)

    def describe(self) -> dict[str, str]:
        c, size = self.own, sum(parameter.numel() for parameter in self.learner.network.parameters())
        hidden = self.described["attention"]["visible_only"]
        sees = "179 values a person can see" if hidden else "195 values"
        looking = ", lanes attend to enemies" if c.network.attention else ""
        share = f"{c.replay.capacity:,} steps, {self.replay.nbytes / 1e9:.1f} GB when full"
        return {
            "network": f"{sees}{looking} -> {' -> '.join([str(c.network.hidden)] * c.network.depth)} "
            f"-> 44 moves x {c.learner.atoms} returns, {size:,} parameters",
            "learner": f"Rainbow: {c.games} games, {c.replay.n_step} steps a return, batch {c.learner.batch}, "
            f"replay ratio {c.learner.replay_ratio:g}, gamma {c.replay.gamma:g}",
            "memory": share,
        }
