"""Mirrors of a training's values in other projects' tools: TensorBoard where it is installed, W&B when asked for.

`Training.log` stays the one place where values are logged; what it writes down it hands on to the mirrors attached
here. The tools are optional: they are imported when a mirror is made. Metrics appear as `family/name`.
"""

import os
import time
from importlib.util import find_spec
from typing import Any, Final, cast

from protege import ProtegeError
from protege.runs.run import Training

WANDB_PROJECT: Final = "protege"


def attach_mirrors(training: Training, *, wandb: bool = False) -> list[str]:
    """Mirror what the training logs from now on; returns a line about each mirror, for whoever watches."""
    lines = []
    if wandb:  # first: the one that can refuse
        mirror = WeightsAndBiases(training)
        training.mirrors.append(mirror)
        lines.append(f"Weights & Biases, {mirror.mode}: {training.wandb}")
    if _installed("tensorboard"):
        try:
            training.mirrors.append(TensorBoard(training))
            lines.append(f"TensorBoard: tensorboard --logdir {training.tensorboard}")
        except Exception as problem:  # nobody asked for it, so no training ends because it is broken
            training.event("mirror dropped", f"TensorBoard: {problem!r}"[:1000])
            lines.append(f"TensorBoard: left out, it does not work here ({problem})")
    return lines


def check_wandb() -> None:
    """Raise if Weights & Biases is not installed; asked before a run is made, no run is made in vain."""
    if not _installed("wandb"):
        missing = "logging to Weights & Biases was asked for, but wandb is not installed"
        raise ProtegeError(f'{missing}: pip install "protege[track]", or leave out --wandb')


class TensorBoard:
    """Writes event files, one for each process that trains the run."""

    def __init__(self, training: Training):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._tags = _tags(training)
        self._event = Event
        training.tensorboard.mkdir(exist_ok=True)
        # TensorBoard reads the files in the order of their names; numbers keep it where the clock was set back.
        number = len(list(training.tensorboard.iterdir())) + 1
        path = training.tensorboard / f"events.out.tfevents.{number:06}.protege"
        # The writers built on this one have a thread, which keeps values back and whose errors reach nobody.
        self._records = RecordWriter(path.open("xb"))
        self._write(file_version="brain.Event:2")

    def log(self, step: int, values: dict[str, float]) -> None:
        shown = [{"tag": self._tags[name], "simple_value": value} for name, value in values.items()]
        self._write(step=step, summary={"value": shown})

    def rewind(self, step: int) -> None:
        """Have TensorBoard forget later values: it drops those from the step of a session's start on."""
        self._write(step=step + 1, session_log={"status": "START"})

    def close(self) -> None:
        self._records.close()

    def _write(self, **content: Any) -> None:
        self._records.write(self._event(wall_time=time.time(), **content).SerializeToString())
        self._records.flush()


class WeightsAndBiases:
    """Logs to Weights & Biases: into the run's folder, unless WANDB_MODE says otherwise."""

    def __init__(self, training: Training):
        check_wandb()
        import wandb

        self.mode = cast(Any, os.environ.get("WANDB_MODE") or "offline")  # wandb says which ones there are
        info = training.info()
        # Quiet, and nothing but the values: watching the machine would take time from the training.
        settings = wandb.Settings(
            silent=True, console="off", save_code=False, disable_git=True, x_disable_meta=True, x_disable_stats=True
        )
        created = "".join(digit for digit in info.created[:19] if digit.isdigit())
        project = os.environ.get("WANDB_PROJECT") or WANDB_PROJECT
        try:
            self._run = wandb.init(
                project=project, id=f"{training.name}-{created}", name=training.name, group=info.game,
                job_type=info.learner, dir=training.wandb.parent, mode=self.mode, config=info.config,
                settings=settings, resume="allow",  # under the same id
            )  # fmt: skip
        except (wandb.Error, ValueError) as error:
            raise ProtegeError(f"Weights & Biases cannot be used with WANDB_MODE={self.mode}: {error}") from error
        self._tags = _tags(training)

    def log(self, step: int, values: dict[str, float]) -> None:
        self._run.log({self._tags[name]: value for name, value in values.items()}, step=step)

    def rewind(self, step: int) -> None:
        """Nothing to do: a step that W&B has is never taken a second time, so its curves cannot go back."""

    def close(self) -> None:
        self._run.finish()  # waits until everything is written, or sent


def _installed(package: str) -> bool:
    found = find_spec(package)
    return found is not None and found.origin is not None  # a mere folder of that name would be found as well


def _tags(training: Training) -> dict[str, str]:
    return {metric.name: f"{metric.family}/{metric.name}" for metric in training.metrics.declared()}
