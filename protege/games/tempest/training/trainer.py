"""How Tempest is learned: the table that the training loop reads."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from protege.games.tempest.agents import network, rainbow
from protege.games.tempest.arcade.bridge import BridgeConfig
from protege.games.tempest.task.env import TASK_VERSION
from protege.games.tempest.training.config import PRESETS, RENAMED, TempestConfig, check, ignored, upgraded_settings
from protege.games.tempest.training.metrics import METRICS
from protege.games.tempest.training.pqn import PQNSession
from protege.games.tempest.training.rainbow import RainbowSession
from protege.games.tempest.training.sources import ArcadeSource, SimulatorSource, Source
from protege.train.session import Context, Session, Trainer

KINDS: Final = {"pqn": network.CHECKPOINT_KIND, "rainbow": rainbow.CHECKPOINT_KIND}  # of checkpoints, by learner


def session(config: TempestConfig, context: Context, bridge: BridgeConfig | None = None) -> Session:
    """The learner that the settings name, on the simulator or, with `bridge`, on arcade clients."""
    if config.learner == "pqn":
        return PQNSession(config, context)
    source: Source = SimulatorSource(config) if bridge is None else ArcadeSource(config, context, bridge)
    return RainbowSession(config, context, source)


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
    return replace(config, rainbow=typical)


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
    metrics=lambda config: METRICS[config.learner],
    score="eval_score",
    session=session,
    kind=lambda config: KINDS[config.learner],
    task_version=TASK_VERSION,
    check=check,
    ignored=ignored,
    typical=typical,
    upgrade=upgrade,
    renamed=RENAMED,
    settings=upgraded_settings,
)


def arcade_trainer(bridge: BridgeConfig) -> Trainer:
    """The same on arcade clients that connect to a bridge."""
    return replace(TRAINER, session=partial(session, bridge=bridge))
