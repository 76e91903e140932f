"""How Tempest is learned: the table that the training loop reads."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from protege.games.tempest.agents import network, rainbow
from protege.games.tempest.agents.lanes import FEATURES, see
from protege.games.tempest.agents.players import SCRIPTED
from protege.games.tempest.agents.rainbow import load_pupil
from protege.games.tempest.arcade.bridge import BridgeConfig
from protege.games.tempest.task.env import TASK_VERSION
from protege.games.tempest.training.behaviour import Teacher
from protege.games.tempest.training.config import (
    PRESETS,
    RENAMED,
    TempestConfig,
    check,
    ignored,
    settled,
    upgraded_settings,
)
from protege.games.tempest.training.metrics import CLIENTS, COMPARED, METRICS
from protege.games.tempest.training.pqn import PQNSession
from protege.games.tempest.training.rainbow import RainbowSession
from protege.games.tempest.training.sources import PLAIN_EYES, ArcadeSource, Eyes, SimulatorSource, Source
from protege.games.tempest.training.starting import find_start
from protege.runs.metrics import Metric
from protege.train.session import Context, Ignored, Session, Trainer

KINDS: Final = {"pqn": network.CHECKPOINT_KIND, "rainbow": rainbow.CHECKPOINT_KIND}  # of checkpoints, by learner


def session(config: TempestConfig, context: Context, bridge: BridgeConfig | None = None) -> Session:
    """The learner that the settings name, on the simulator or, with `bridge`, on arcade clients."""
    config, eyes, without_memory = settled(config), PLAIN_EYES, config.learner == "pqn"
    if without_memory:
        eyes = Eyes(FEATURES, partial(see, visible_only=config.visible_only), values=True)
    teacher = Teacher(config.teacher, context.run.path.parent)
    source: Source = (
        SimulatorSource(config, teacher, eyes)
        if bridge is None
        else ArcadeSource(config, context, bridge, teacher, eyes)
    )
    return PQNSession(config, context, source) if without_memory else RainbowSession(config, context, source)


def admit(config: TempestConfig, name: str | None, resume: bool, folder: Path | None) -> None:
    """Raise if there is no such teacher, or nobody to start from."""
    Teacher(config.teacher, folder)
    if config.start_from and not resume:
        load_pupil(find_start(config.start_from, folder))


def metrics(config: TempestConfig) -> Sequence[Metric]:
    """What is logged: more where there is somebody else to be compared with."""
    others = ["own_teacher"] * (config.teacher not in SCRIPTED) + ["start"] * bool(config.start_from)
    return (*METRICS[config.learner], *(metric for other in others for metric in COMPARED[other]))


def typical(config: TempestConfig) -> TempestConfig:
    """Settings with which the first experience is like that of most of a training."""
    c = config.rainbow
    typical = replace(
        c,
        minimum_fill=c.batch,
        warm_frames=0,
        warm_updates=0,
        epsilon=c.final_epsilon,
        teacher_fraction=c.final_teacher_fraction,
    )
    return replace(config, rainbow=typical, start_from="")  # an estimate distils nothing


def upgrade(state: dict[str, Any]) -> dict[str, Any]:
    """A checkpoint of a training before sessions had a state of their own."""
    practice: Mapping[str, Any] = state["practice"]
    trailing = {"trailing": practice["distillation"]} if "distillation" in practice else {}
    return {
        "step": state["frames"],
        "elapsed_s": state["elapsed_s"],
        "cpu_s": state.get("cpu_s", 0.0),
        "progress": state.get("done", 0.0),
        "best": [state["best"]],
        "best_of": "None ",
        "next_evaluation_step": state["next_exam_frame"],
        "controls": state["switches"],
        "session": {"learner": practice, **practice, **trailing, "windows": state["windows"]},  # PQN had its own flat
    }


TRAINER: Final = Trainer(
    game="tempest",
    unit="frame",
    config=TempestConfig,
    presets=PRESETS,
    learner=lambda config: config.learner,
    metrics=metrics,
    score="eval_score",
    session=session,
    kind=lambda config: KINDS[config.learner],
    task_version=TASK_VERSION,
    check=check,
    admit=admit,
    ignored=ignored,
    typical=typical,
    upgrade=upgrade,
    renamed=RENAMED,
    settings=upgraded_settings,
)


def for_clients(config: TempestConfig, *, fresh: bool) -> TempestConfig:
    """Settings as arcade clients need them: their frames are dear, so a `fresh` run has and keeps a memory."""
    config = replace(config, deterministic=False)
    if fresh:
        config = replace(config, learner="rainbow", rainbow=replace(config.rainbow, save_replay=True))
    return config


def arcade_ignored(config: TempestConfig) -> dict[str, Ignored]:
    """Settings that have no effect on arcade clients."""
    own = "clients start their games themselves, and each plays one"
    found = {flag: Ignored(own, ("--start-level",)) for flag in ("--starts.", "--rainbow.games", "--rainbow.piece")}
    return ignored(config) | found | {"--deterministic": Ignored("clients keep their own time", ())}


def arcade_metrics(config: TempestConfig) -> Sequence[Metric]:
    """What is logged on arcade clients."""
    found = dict.fromkeys((*metrics(config), *CLIENTS, *COMPARED["client_teacher"] * (config.teacher in SCRIPTED)))
    return tuple(found)


def arcade_trainer(bridge: BridgeConfig) -> Trainer:
    """The same on arcade clients that connect to a bridge."""
    return replace(TRAINER, session=partial(session, bridge=bridge), ignored=arcade_ignored, metrics=arcade_metrics)
