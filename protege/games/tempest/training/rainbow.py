"""Rainbow at work: what its source collects goes into the replay, and updates are made as the frames allow.

Schedules count frames; with `schedule_frames` a run's budget, if it has one, is stretched to so many. The learning rate
falls with the budget.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from protege.games.tempest.agents import lanes
from protege.games.tempest.agents.attention import attention_report
from protege.games.tempest.agents.rainbow import CHECKPOINT_KIND, RainbowPupil, build_network, shape_of
from protege.games.tempest.task import actions
from protege.games.tempest.task.packing import PACKING
from protege.games.tempest.training.behaviour import Exploration
from protege.games.tempest.training.config import TempestConfig
from protege.games.tempest.training.session import TempestSession
from protege.games.tempest.training.sources import Floats, Played, Source
from protege.games.tempest.training.starting import divergence
from protege.learn import replay_file
from protege.learn.rainbow import Mirror, Rainbow
from protege.learn.replay import Replay, ReplayError
from protege.learn.schedules import linear
from protege.learn.state import restore_generator
from protege.runs import checkpoints
from protege.seeds import Purpose, random_stream
from protege.train.controls import Controls, Report, Scheduled
from protege.train.session import Context, Experience, Figures

WARMING_ROUND: Final = 4  # updates between two looks at everything else while the memory holds teacher's frames alone
REPORT_FRAMES: Final = 256  # looked at for an attention report
DISTILLED_SPREAD: Final = 1.0  # of a distribution that is made from a value, in atoms
SAVING_PAUSE: Final = 10.0  # times as long as the memory's last save took, it is not saved again


class RainbowSession(TempestSession):
    """Distributional Q-learning from a prioritised memory."""

    learner: Rainbow
    kind = CHECKPOINT_KIND

    def __init__(self, config: TempestConfig, context: Context, source: Source):
        super().__init__(config, context, source)
        c, self.replay_path = config.rainbow, context.run.replay
        self.own = c
        self.described = shape_of(c, c, config.visible_only)
        mirror = Mirror(lanes.MIRRORED, actions.MIRRORED) if c.network == "lanes" else None
        network = build_network(self.described).to(self.device)
        self.learner = Rainbow(network, c, factors=actions.FACTORS, mirror=mirror, threads=self.threads)
        self.replay = Replay(PACKING, c.replay)
        self.drawing = random_stream(config.seed, Purpose.REPLAY)
        reports: dict[str, Callable[[], Report | str]] = {"replay": self._contents, "flush": self._flush}
        if self.pupil().attends:
            reports["attention"] = self._attention
        self.controls = Controls(c.learning_rate, reports | dict(source.reports), pulse_from=c.pulse_from or None)
        self.position = 0  # frames as the schedules count them
        self.bc_weight = 0.0
        self.saving: threading.Thread | None = None  # the memory, in the background
        self.next_saving = 0.0  # by the clock, unless somebody waits for it
        self.unsaved = ""  # why the memory could not be saved, until somebody is told
        self.credit = 0.0  # part of an update that frames so far allow

    def scheduled(self) -> Scheduled:
        c = self.own
        epsilon = linear(self.position, c.epsilon, c.final_epsilon, c.epsilon_frames)
        if self.frames < c.warm_frames:
            teacher = 1.0
        elif c.teacher_by == "frames":
            teacher = linear(self.position, c.teacher_fraction, c.final_teacher_fraction, c.teacher_frames)
        else:
            teacher = c.final_teacher_fraction + (c.teacher_fraction - c.final_teacher_fraction) * self.trailing
        return Scheduled(self.frames, epsilon, teacher)

    # --- playing ---

    def collect(self, room: Any) -> Played:
        if self.source.can_wait and self._warming():  # updates from the teacher's frames alone come first
            return Played(room, 0, self.after)
        self.follow()
        return self.source.collect(room)

    def follow(self) -> None:
        c, scheduled = self.own, self.scheduled()
        epsilon, teacher = self.controls.epsilon(scheduled), self.controls.teacher(scheduled)
        explore = Exploration(epsilon, teacher, c.zoom_epsilon, c.zoom_teacher, c.zap_gate, c.zap_penalty)
        self.source.follow(RainbowPupil(self.learner.acting), explore)

    def _filled(self) -> bool:
        """There is enough in the memory to learn from."""
        return len(self.replay) >= max(self.own.minimum_fill, self.own.batch)

    def _warming(self) -> bool:
        """The teacher's frames are there, and not all updates from them alone have been made."""
        c = self.own
        wanted = self.frames >= c.warm_frames and self.learner.updates < c.warm_updates
        return wanted and self.controls.learning and self._filled()

    # --- learning ---

    def update(self, experience: Experience) -> Figures:
        assert isinstance(experience, Played)
        c, learner, progress = self.own, self.learner, self.context.progress()
        began = time.thread_time() + learner.others_cpu_s
        for transitions in self.source.transitions(experience):
            self.replay.add(*transitions)
        self.note(experience)
        budget = self.config.minutes or self.config.frames
        self.position = int(progress * c.schedule_frames) if budget and c.schedule_frames else self.frames
        learner.set_progress(progress if budget else None, self.care * self.controls.rate_factor)
        self.bc_weight = c.bc_weight_at(self.position)
        figures: Figures = {}
        due = self._due(experience.steps)
        for _ in range(due):
            batch = self.replay.sample(c.batch, c.beta_at(self.position), self.drawing)
            figures, divergences = learner.update(batch, self.bc_weight)
            self.replay.update(batch.handle, divergences)
            self.source.learned(experience.steps / due)
        if not due:
            self.source.learned(experience.steps)
        self.accounts.learning += time.thread_time() + learner.others_cpu_s - began
        return figures

    def _due(self, frames: int) -> int:
        """Updates that these frames allow. What could not be made is not made up for later."""
        c = self.own
        if not self.controls.learning or not self._filled():
            self.credit = 0.0
            return 0
        if warming := self._warming():
            if self.source.can_wait:
                return WARMING_ROUND
        self.credit += frames * c.replay_ratio / c.batch
        due = int(self.credit)
        self.credit -= due
        return min(self.source.most_updates, due) + WARMING_ROUND * warming

    def figures(self) -> Figures:
        scheduled = self.scheduled()
        renamed = {"steps": "replay_size", "dropped": "dropped"}
        memory = {renamed.get(name, f"replay_{name}"): value for name, value in self.replay.figures().items()}
        return (
            super().figures()
            | memory
            | {
                "epsilon": self.controls.epsilon(scheduled),
                "teacher_fraction": self.controls.teacher(scheduled),
                "bc_weight": self.bc_weight,
                "replay_ratio": self.learner.updates * self.own.batch / max(1, self.frames),
            }
        )

    def pupil(self) -> RainbowPupil:
        return RainbowPupil(self.learner.averaged.frozen())

    def distillation_loss(self, observation: Floats, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Distributions around the values wanted, as narrow as atoms can say it, and the same choice between them."""
        network = self.learner.network
        logits, support, wanted = (
            network(torch.from_numpy(observation).to(self.device)),
            network.support,
            wanted.to(self.device),
        )
        spread = DISTILLED_SPREAD * (support[1] - support[0])
        inside = wanted.clamp(float(support[0]), float(support[-1]))
        target = torch.softmax(-0.5 * ((support - inside[:, :, None]) / spread).square(), 2)
        log_probabilities = torch.log_softmax(logits, 2)
        cross_entropy = -(target * log_probabilities).sum(2).mean()
        values = log_probabilities.exp() @ support
        return cross_entropy + divergence(values, wanted), values

    # --- checkpoints ---

    def about(self) -> dict[str, Any]:
        return {"shape": self.described}

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "position": self.position,
            "credit": self.credit,
            "memory": self.replay.state()["end"],
            "drawing": self.drawing.bit_generator.state,
        }

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        super().restore(saved, state)
        self.position, self.credit = state["position"], state["credit"]
        restore_generator(self.drawing, state["drawing"])
        if not self.replay_path.is_file():
            least = f"{self.own.minimum_fill:,}"
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
        super().close()
        if self.saving is not None:
            self.saving.join()

    def sizes(self) -> tuple[int, int]:
        return self.replay.nbytes, self.replay.nbytes if self.own.save_replay else 0

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

    def describe_learner(self) -> dict[str, str]:
        c, size = self.own, sum(parameter.numel() for parameter in self.learner.network.parameters())
        sees = "179 values a person can see" if self.config.visible_only else "195 values"
        return {
            "network": f"{c.network}: {sees} -> {' -> '.join(map(str, c.widths))} -> 44 moves x {c.atoms} returns, "
            f"{size:,} parameters",
            "learner": f"Rainbow: {self.source.title}{c.replay.n_step} steps a return, batch {c.batch}, "
            f"replay ratio {c.replay_ratio:g}, gamma {c.replay.gamma:g}",
            "memory": f"{c.replay.capacity:,} steps, {self.replay.nbytes / 1e9:.1f} GB when full",
        }
