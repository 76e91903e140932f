"""Rainbow on somebody's own game: frames go into a replay, and updates are made as the frames allow."""

import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch

from protege.games.own.training.config import OwnConfig
from protege.games.own.training.session import OwnSession, Played
from protege.games.own.world.arena import World
from protege.games.own.world.spaces import Array, Floats
from protege.learn.packing import Packing, packing
from protege.learn.rainbow import Rainbow
from protege.learn.replay import Actor, Batch, Replay
from protege.learn.state import restore_generator
from protege.runs import checkpoints
from protege.seeds import Purpose, random_stream
from protege.train.session import Context, Experience, Figures

REACH: Final = 64.0  # times the largest distance from the mean that was seen at first, before a number is cut
MOST_UPDATES: Final = 64  # of one experience


class RainbowSession(OwnSession):
    """Distributional Q-learning from a prioritised memory."""

    def __init__(self, config: OwnConfig, context: Context, world: World):
        super().__init__(config, context, world)
        self.ahead = not config.deterministic
        c, sight = self.own, world.sight
        self.shape |= {"atoms": c.atoms, "low": c.low, "high": c.high}
        self.learner = Rainbow(self.network(), c, threads=self.threads)  # type: ignore[arg-type]
        self.replay = Replay(packing_of(sight.features, sight.is_picture), c.replay)
        self.centre, self.reach = np.zeros((2, sight.features), np.float32)  # how numbers fit into the replay
        self.drawing = random_stream(config.seed, Purpose.REPLAY)
        self.credit = 0.0  # part of an update that frames so far allow

    @property
    def gamma(self) -> float:
        return float(self.own.replay.gamma)

    def begin(self, resumed: bool) -> None:
        super().begin(resumed)
        if not resumed and not self.world.sight.is_picture:
            self.centre = self.scaling.mean.astype(np.float32)
            spread = 6.0 * np.sqrt(self.scaling.variance).astype(np.float32)
            self.reach = np.float32(REACH) * np.maximum(spread, np.float32(1e-3))

    def kept(self, observations: Array) -> Floats:
        """As the replay keeps them, from -1 to 1."""
        if self.world.sight.is_picture:
            return self.world.sight.pixels(observations)
        found: Floats = np.clip((observations - self.centre) / self.reach, -1.0, 1.0)
        return found

    def features(self, kept: Floats) -> Floats:
        """What the network sees of what was kept."""
        return kept if self.world.sight.is_picture else self.scaling.see(kept * self.reach + self.centre)

    def room(self) -> list[Any]:
        return []

    def collect(self, room: list[Any]) -> Played:
        room.clear()
        c, arena, began, scheduled = self.own, self.arena, time.thread_time(), self.scheduled()
        epsilon, streams, seen = self.controls.epsilon(scheduled), np.arange(c.games), []
        for _ in range(c.piece):
            network = self.learner.acting
            with torch.inference_mode():
                features = torch.from_numpy(self.scaling.see(arena.observation))
                moves = network.expected(network(features)).argmax(1).numpy()
            at_random = self.random.random(c.games) < epsilon
            moves[at_random] = arena.moves.random(self.random.random((int(at_random.sum()), 1)))
            actors = np.where(at_random, Actor.RANDOM, Actor.PUPIL)
            advice = arena.advice() if self.advised else np.full(c.games, -1)
            before = arena.observation
            seen.append(before)
            step = arena.step(moves)
            never = np.zeros(c.games, np.bool_)
            room.append((streams, self.kept(before), moves, step.reward, step.terminated, never, actors, advice))
            cut = step.truncated[step.ended]
            if cut.any():  # what was seen last is kept as a step whose action comes to nothing
                who, ones = step.ended[cut], np.ones(int(cut.sum()), np.int64)
                kept = self.kept(step.last[cut])
                room.append((who, kept, 0 * ones, 0.0 * ones, 0 * ones, ones, Actor.PUPIL * ones, -ones))
            self.rewards.note(step.reward, step.ended)
        self.scaling.note(np.concatenate(seen))
        return Played(room, c.games * c.piece, None, arena.taken_episodes(), playing_s=time.thread_time() - began)

    def update(self, experience: Experience) -> Figures:
        c, learner, began = self.own, self.learner, time.thread_time() + self.learner.others_cpu_s
        for transitions in experience.content:
            self.replay.add(*transitions)
        self.note(experience)
        progress = self.context.progress()
        self.rate = learner.set_progress(progress, self.controls.rate_factor)
        figures: Figures = {}
        weight = self.advice_weight(c.bc_weight)
        for _ in range(self._due(experience.steps)):
            batch = self.replay.sample(c.batch, c.beta + (1.0 - c.beta) * min(1.0, progress), self.drawing)
            figures, divergences = learner.update(self._scaled(batch), weight)
            self.replay.update(batch.handle, divergences)
        return self.learned(began, figures)

    def _scaled(self, batch: Batch) -> Batch:
        """With features in place of what was kept, and returns on their scale."""
        return batch._replace(
            observation=self.features(batch.observation),
            next_observation=self.features(batch.next_observation),
            returns=batch.returns * np.float32(self.rewards.factor),
        )

    def _due(self, frames: int) -> int:
        """Updates that these frames allow. What could not be made is not made up for later."""
        c = self.own
        if not self.controls.learning or len(self.replay) < max(c.minimum_fill, c.batch):
            self.credit = 0.0
            return 0
        self.credit += frames * c.replay_ratio / c.batch
        due = int(self.credit)
        self.credit -= due
        return min(MOST_UPDATES, due)

    def figures(self) -> Figures:
        return super().figures() | {"replay_size": len(self.replay)}

    def state(self) -> dict[str, Any]:
        kept = {"centre": self.centre, "reach": self.reach, "drawing": self.drawing.bit_generator.state}
        return super().state() | kept

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        notes = super().restore(saved, state)
        self.centre, self.reach = state["centre"], state["reach"]
        restore_generator(self.drawing, state["drawing"])
        return [*notes, f"the memory is not saved: updates go on when it holds {self.own.minimum_fill:,} steps again"]

    def sizes(self) -> tuple[int, int]:
        return self.replay.nbytes, 0

    def describe_learner(self) -> str:
        c = self.own
        return (
            f"Rainbow: {c.games} games, {c.replay.n_step} steps a return, batch {c.batch}, replay ratio "
            f"{c.replay_ratio:g}, gamma {c.replay.gamma:g}; {c.replay.capacity:,} steps, "
            f"{self.replay.nbytes / 1e6:,.0f} MB when full"
        )


def packing_of(features: int, pixels: bool) -> Packing:
    """Pixels in one code each; of other numbers nobody knows the grid, so they have two."""
    return packing([255 if pixels else 1] * features, fine=() if pixels else range(features))
