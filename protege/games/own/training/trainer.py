"""How somebody's own game is learned: the table that the training loop reads."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from protege.games.own.training.config import OwnConfig, check, ignored, presets
from protege.games.own.training.metrics import METRICS
from protege.games.own.training.ppo import PPOSession
from protege.games.own.training.pqn import PQNSession
from protege.games.own.training.rainbow import RainbowSession
from protege.games.own.world.arena import World
from protege.train.session import Context, Session, Trainer

SESSIONS: Final[dict[str, Any]] = {"pqn": PQNSession, "rainbow": RainbowSession, "ppo": PPOSession}


def trainer_of(name: str, worlds: Callable[[str], World]) -> Trainer:
    """For the game of this name; `worlds` gives it with a teacher."""
    world = worlds("")
    with_teacher = cache(worlds)

    def session(config: OwnConfig, context: Context) -> Session:
        found: Session = SESSIONS[config.learner](config, context, with_teacher(config.teacher))
        return found

    return Trainer(
        game=name,
        unit="frame",
        config=OwnConfig,
        presets=presets(world),
        learner=lambda config: config.learner,
        metrics=lambda config: METRICS[config.learner],
        score="eval_return",
        session=session,
        kind=lambda config: world.kind,
        task_version=world.version,
        check=lambda config: check(config, with_teacher(config.teacher)),
        ignored=lambda config: ignored(config, world),
    )
