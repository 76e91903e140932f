"""The settings of a training on somebody's own game, and presets for them."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import tyro

from protege import ProtegeError
from protege.games.own.world.arena import World
from protege.learn.ppo import PPOConfig
from protege.learn.pqn import PQNConfig
from protege.learn.rainbow import RainbowConfig
from protege.learn.replay import NO_ADVICE, ReplayConfig
from protege.train.session import Ignored, clocks_ignored

LEARNERS: Final = ("pqn", "rainbow", "ppo")


@dataclass(frozen=True)
class PQNTraining(PQNConfig):
    """Settings of PQN, the learner without a replay."""

    games: int = 128  # games that advance together
    horizon: int = 32  # frames of each game between two rounds of updates
    minibatch: int = 512  # samples per update
    # lambda of the Q(lambda) returns: near 1, since advantages are small beside values where frames are many
    lambda_: Annotated[float, tyro.conf.arg(name="lambda")] = 0.95
    temperature: float = 0.05  # of the softmax over action values that is distilled; returns are about 1
    epsilon: float = 0.02  # final probability of a random move
    distillation: float = 1.0  # weight of the teacher's advice; falls to 0 as the pupil's return reaches its


@dataclass(frozen=True)
class RainbowTraining(RainbowConfig):
    """Settings of Rainbow, the learner with a replay."""

    games: int = 16  # games that advance together
    piece: int = 16  # frames of each game between two rounds of updates
    batch: int = 256  # samples per update
    learning_rate: float = 5e-4  # at its peak, after the warm-up
    final_learning_rate: float = 5e-5  # when the budget is used up
    warm_up: int = 200  # updates over which the learning rate rises to its peak
    target_sync_every: int = 500  # updates between copies of the weights into the target network
    acting_every: int = 20  # updates between copies of the weights for the player
    adam_epsilon: float = 1e-5  # epsilon of Adam
    low: float = -10.0  # lowest atom; returns are about 1
    high: float = 10.0  # highest atom
    replay_ratio: float = 8.0  # how often each frame is learned from, on average
    margin: float = (
        0.05  # by which behaviour cloning wants the teacher's action to lead all others; returns are about 1
    )
    minimum_fill: int = 2_000  # transitions in the replay before the first update
    ema: float = 0.01  # step of the running average of the weights, which is evaluated and kept; 1 for the newest
    replay: ReplayConfig = ReplayConfig(capacity=500_000, n_step=5, priority_alpha=0.0)
    epsilon: float = 0.02  # final probability of a random move


@dataclass(frozen=True)
class PPOTraining(PPOConfig):
    """Settings of PPO, the learner for any kind of action."""

    games: int = 64  # games that advance together
    horizon: int = 64  # frames of each game between two rounds of updates
    chunk: int = 16  # frames that are learned from in one piece
    recurrent: bool = False  # a policy with a memory
    central: bool = True  # a squad's critic sees what all its members see; else each member is judged by what it sees
    epochs: int = 4  # passes over a rollout, unless the policy moves too far before
    gamma: float = 0.998  # discount factor, per frame
    entropy: float = 0.01  # weight of the mean entropy of the choices, at the start
    final_entropy: float = 0.0  # when the budget is used up
    critic_rate: float = 1.0  # the critic's learning rate as a multiple of the policy's
    learning_rate: float = 1e-3  # at the start
    imitation: float = 1.0  # weight of the teacher's advice; falls to 0 as the pupil's return reaches its


@dataclass(frozen=True)
class OwnConfig:
    """Settings of a training on a game of one's own."""

    minutes: float = 10.0  # wall-clock budget of the whole run, earlier starts included; 0 for none
    frames: int = 0  # budget in frames instead of minutes, also of the whole run; 0 for none
    seed: int = 1  # of the games, the network and the exploration
    learner: Literal["pqn", "rainbow", "ppo"] = "pqn"  # pqn and rainbow choose among actions; ppo takes numbers, too
    # Who is to be outplayed: package.module:name of a function over observations, or over (environment, observation).
    # Its advice is asked in every frame and imitated until the pupil is as good; it never plays itself.
    teacher: str = ""
    teacher_fraction: float = 0.5  # of the budget after which advice counts no more, however good the pupil is
    epsilon_fraction: float = 0.1  # of the budget over which random moves fade from 100 %, or 25 % with a teacher
    widths: tuple[int, ...] = (128, 128)  # sizes of the network's layers
    longest: int = 20_000  # frames after which an episode is truncated, if the game does not end it before
    pqn: PQNTraining = PQNTraining()
    rainbow: RainbowTraining = RainbowTraining()
    ppo: PPOTraining = PPOTraining()
    eval_games: int = 100  # held-out episodes of an evaluation
    eval_seconds: float = 60.0  # least time between evaluations
    eval_every: int = 500_000  # frames between evaluations of a deterministic run, which ignores the clock
    autosave_seconds: float = 60.0  # time between checkpoints
    threads: int = 0  # threads that learn, beside one that plays and one that evaluates; 0 for one per core, at most 4
    deterministic: bool = False  # one thread, budget in frames: the same numbers every time

    @property
    def own(self) -> Any:
        """Settings of the learner."""
        return getattr(self, self.learner)


def presets(world: World) -> dict[str, OwnConfig]:
    """Settings to start from; the learner is the one that suits the game's actions."""
    # Games of arrays play faster than PPO can learn; an environment in Python gives few frames, of which it makes more.
    learner: Any = "pqn" if world.moves.is_discrete and world.is_fast else "ppo"
    usual = OwnConfig(learner=learner)
    smoke = replace(
        usual, minutes=0.25, widths=(32, 32), eval_games=10, eval_seconds=4.0, eval_every=10_000, autosave_seconds=5.0,
        pqn=PQNTraining(games=8, minibatch=128), ppo=PPOTraining(games=4, horizon=64, epochs=2, minibatches=2),
        rainbow=RainbowTraining(
            games=8, batch=64, minimum_fill=500, warm_up=20, replay=replace(usual.rainbow.replay, capacity=20_000)
        ),
    )  # fmt: skip
    full = replace(usual, minutes=60.0, widths=(256, 256), eval_games=200, eval_seconds=180.0)
    return {"smoke": smoke, "laptop": usual, "full": full}


def check(config: OwnConfig, world: World) -> None:
    """Raise if the settings do not go together, or not with the game."""
    moves, learner = world.moves, config.learner
    if config.deterministic and not config.frames:
        raise ProtegeError("a deterministic run needs a budget in frames, because clocks differ: add --frames 1000000")
    if learner != "ppo" and world.members > 1:
        raise ProtegeError(f"{world.place} is played by a squad, which only ppo can train: use --learner ppo")
    if learner != "ppo" and not moves.is_discrete:
        raise ProtegeError(
            f"{world.place} takes actions in {moves.space}, and learner {learner} chooses one of several: "
            "use --learner ppo"
        )
    if learner == "rainbow" and moves.sizes[0] >= NO_ADVICE:
        raise ProtegeError(f"learner rainbow knows up to {NO_ADVICE - 1} actions, {world.place} has {moves.sizes[0]}")
    if learner == "ppo" and config.ppo.horizon % config.ppo.chunk:
        raise ProtegeError(f"horizon {config.ppo.horizon} must be a multiple of chunk {config.ppo.chunk}")
    if learner == "pqn" and config.pqn.games * config.pqn.horizon < config.pqn.minibatch:
        raise ProtegeError(
            f"a rollout of {config.pqn.games} games x {config.pqn.horizon} frames is smaller than one minibatch of "
            f"{config.pqn.minibatch}: use more games or a smaller minibatch"
        )


def ignored(config: OwnConfig, world: World) -> dict[str, Ignored]:
    """Settings that have no effect with the others as they are."""
    others = [learner for learner in LEARNERS if learner != config.learner]
    found = {
        f"--{other}.": Ignored(
            f"it is a setting of learner {other}, and {config.learner} learns",
            (f"--{config.learner}.", f"--learner {other}"),
        )
        for other in others
    }
    if not config.teacher and not world.teaches:
        found["--teacher-fraction"] = Ignored("there is no teacher", ("--teacher package.module:function",))
    return found | clocks_ignored(config)
