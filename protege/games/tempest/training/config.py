"""The settings of a training on Tempest, and presets for them."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import torch
import tyro

from protege import ProtegeError
from protege.games.tempest.agents.players import SCRIPTED
from protege.games.tempest.agents.rainbow import NetworkConfig
from protege.games.tempest.training.simulator import StartConfig
from protege.learn.optimise import find_device
from protege.learn.pqn import PQNConfig
from protege.learn.rainbow import RainbowConfig
from protege.learn.replay import ReplayConfig
from protege.train.session import Ignored, clocks_ignored


@dataclass(frozen=True)
class PQNTraining(PQNConfig):
    """Settings of PQN, the learner without a replay."""

    widths: tuple[int, ...] = (512, 256)  # sizes of the network's layers
    epsilon: float = 0.02  # final probability of a random move
    epsilon_frames: int = 400_000  # frames over which epsilon falls from 1 to that
    distillation: float = 1.0  # weight of the teacher's advice; falls to 0 as the pupil's score reaches its


@dataclass(frozen=True)
class RainbowTraining(NetworkConfig, RainbowConfig):
    """Settings of Rainbow, the learner with a replay."""

    games: int = 64  # games that advance together
    piece: int = 16  # frames of each game between two rounds of updates
    replay: ReplayConfig = ReplayConfig(capacity=2_000_000)
    schedule_frames: int = 7_000_000  # frames that the whole budget stands for in schedules; 0 to count real frames
    epsilon: float = 1.0  # initial probability of a random move
    final_epsilon: float = 0.01  # final probability of a random move
    epsilon_frames: int = 500_000  # frames over which it decays
    pulse_from: int = 0  # frame from which epsilon swings up to 25 % and back every 500,000 frames; 0 for never
    teacher_fraction: float = 0.5  # initial fraction of the teacher's moves
    final_teacher_fraction: float = 0.02  # final fraction of the teacher's moves
    teacher_frames: int = 5_000_000  # frames over which it decays
    teacher_by: Literal["frames", "result"] = "result"  # decays with frames, or as the score nears the teacher's
    zoom_teacher: float = 2.0  # factor on the teacher's moves in a zoom
    zoom_epsilon: float = 0.2  # factor on random moves in a zoom
    zap_gate: float = 1.0  # probability that a zap which is not the teacher's is let through
    zap_penalty: float = -0.05  # reward for a zap that is not let through, paid with the next frame
    warm_frames: int = 100_000  # frames played by the teacher alone, at the start
    warm_updates: int = 1_000  # updates from these alone, before the pupil plays
    reply_delay: float = 0.5  # seconds that replies to arcade clients wait for due updates, at most; 0 for never
    # save the replay with the checkpoints, so that a resumed run has it (rainbow)
    save_replay: Annotated[bool, tyro.conf.arg(prefix_name=False)] = False


@dataclass(frozen=True)
class TempestConfig:
    """Settings of a training on the Tempest simulator."""

    minutes: float = 10.0  # wall-clock budget of the whole run: start-up, compilation and earlier starts; 0 for none
    frames: int = 0  # budget in frames instead of minutes, also of the whole run; 0 for none
    seed: int = 1  # of the games, the network and the exploration
    learner: Literal["pqn", "rainbow"] = "pqn"  # pqn has no replay and is the fastest on a simulator; rainbow has one
    # Whose advice the pupil learns from: teacher, champion, the name of a run, the path of a checkpoint, or your own
    # package.module:Class
    teacher: str = "teacher"
    # Whose weights the training begins with: champion, the name of a run or the path of a checkpoint. Another kind of
    # network is distilled into the one asked for. Nothing is learned from the scripted teacher then.
    start_from: str = ""
    start_rate: float = 0.1  # with --start-from: multiple of the learning rate
    distil_frames: int = 1_000_000  # with --start-from and another network: frames over which it is distilled
    visible_only: bool = False  # hide the 16 counters that a person at the machine cannot see
    shaping: float = 0.0  # fraction of the lane-safety reward that is added to the points
    pqn: PQNTraining = PQNTraining()
    rainbow: RainbowTraining = RainbowTraining()
    starts: StartConfig = StartConfig()
    eval_games: int = 60  # held-out games of an evaluation
    eval_frames: int = 25_000  # frames after which these games are truncated
    eval_seconds: float = 60.0  # least time between evaluations
    client_games: int = 16  # games of an evaluation on arcade clients, and as many of whoever it is compared with
    client_every: int = 8  # one in so many of their games is played for that while an evaluation is under way
    eval_every: int = 2_000_000  # frames between evaluations of a deterministic run, which ignores the clock
    autosave_seconds: float = 60.0  # time between checkpoints
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"  # where rainbow learns; auto: a GPU if there is one
    threads: int = 0  # threads that learn, beside one that plays and one that evaluates; 0 for one per core, at most 4
    deterministic: bool = False  # one thread, budget in frames: the same numbers every time, also across a resume


PRESETS: Final = {
    "smoke": TempestConfig(
        minutes=0.5,
        eval_games=8,
        eval_frames=4_000,
        eval_seconds=8.0,
        eval_every=60_000,
        autosave_seconds=5.0,
        pqn=PQNTraining(games=64, minibatch=512, widths=(64, 64), epsilon_frames=50_000),
        rainbow=RainbowTraining(
            games=16,
            batch=64,
            learning_rate=2.5e-4,
            warm_up=100,
            minimum_fill=500,
            acting_every=20,
            widths=(64, 64),
            replay=ReplayConfig(capacity=50_000),
            warm_frames=2_048,
            warm_updates=20,
        ),
    ),
    # Rainbow judged by frames, which emulators make dear. Teacher, cloning and random moves let go after 300,000 real
    # frames, whatever the budget is; only the learning rate falls with it. Samples are drawn uniformly: priorities cost
    # a quarter of the score here (LOG.md). The support fits the returns of this game, with atoms 1 apart, and the
    # player that is measured is an average of the weights.
    "laptop": TempestConfig(
        rainbow=RainbowTraining(
            learning_rate=2.5e-4,
            final_learning_rate=2.5e-5,
            warm_up=500,
            target_sync_every=500,
            acting_every=25,
            max_grad_norm=10.0,
            low=-10.0,
            high=40.0,
            replay_ratio=4.0,
            ema=0.01,
            adam_epsilon=1e-5,
            replay=ReplayConfig(capacity=2_000_000, n_step=3, priority_alpha=0.0),
            schedule_frames=0,
            final_epsilon=0.02,
            epsilon_frames=100_000,
            final_teacher_fraction=0.0,
            teacher_frames=300_000,
            teacher_by="frames",
            final_bc_weight=0.0,
            bc_frames=0,
            bc_fall=300_000,
            warm_frames=50_000,
        )
    ),
    # Schedules as they were published, in real frames; the whole memory, a superzapper that hardly opens, pulses.
    # docs/evidence.md lists where it still differs.
    "full": TempestConfig(
        minutes=0.0,
        eval_games=200,
        eval_frames=100_000,
        eval_seconds=600.0,
        pqn=PQNTraining(games=1024, minibatch=4096, widths=(512, 512), epsilon_frames=2_000_000),
        rainbow=RainbowTraining(
            network="published",
            widths=(384, 384),
            stream_width=192,
            separate_heads=False,
            mirror=False,
            replay=ReplayConfig(),
            schedule_frames=0,
            pulse_from=3_000_000,
            teacher_by="frames",
            zap_gate=0.01,
            warm_frames=0,
            warm_updates=0,
        ),
    ),
}


def settled(config: TempestConfig) -> TempestConfig:
    """Settings that spoil nothing of what a pupil can do that does not begin from nothing.

    No warm start, few random moves from the first frame on, and no advice of the scripted teacher.
    """
    if not config.start_from:
        return config
    r, p = config.rainbow, config.pqn
    rainbow = replace(r, warm_frames=0, warm_updates=0, epsilon=min(r.epsilon, r.final_epsilon))
    pqn = replace(p, epsilon_frames=0)
    if config.teacher in SCRIPTED:
        rainbow = replace(rainbow, teacher_fraction=0.0, final_teacher_fraction=0.0, bc_weight=0.0, final_bc_weight=0.0)
        pqn = replace(pqn, distillation=0.0)
    return replace(config, rainbow=rainbow, pqn=pqn)


def check(config: TempestConfig) -> None:
    """Raise if the settings do not go together."""
    if config.deterministic and not config.frames:
        raise ProtegeError("a deterministic run needs a budget in frames, because clocks differ: add --frames 5000000")
    if config.pqn.games * config.pqn.horizon < config.pqn.minibatch:
        raise ProtegeError(
            f"a rollout of {config.pqn.games} games x {config.pqn.horizon} frames is smaller than one minibatch of "
            f"{config.pqn.minibatch}: use more games or a smaller minibatch"
        )
    if config.client_games < 2 or config.client_every < 1:
        raise ProtegeError(
            "an evaluation on arcade clients takes at least two games, one in one or more: "
            f"got --client-games {config.client_games}, --client-every {config.client_every}"
        )
    device_of(config)


def device_of(config: TempestConfig) -> torch.device:
    """Where the learner works; raises if that cannot be."""
    if config.learner == "pqn" or config.deterministic:
        if config.device not in ("auto", "cpu"):
            why = "a deterministic run" if config.deterministic else "learner pqn"
            raise ProtegeError(f"{why} works on the CPU alone: leave out --device {config.device}")
        return torch.device("cpu")
    return find_device(config.device)


def ignored(config: TempestConfig) -> dict[str, Ignored]:
    """Settings that have no effect with the others as they are."""
    learner, other = config.learner, "rainbow" if config.learner == "pqn" else "pqn"
    why = f"it is a setting of learner {other}, and {learner} learns"
    found = {f"--{other}.": Ignored(why, (f"--{learner}.", f"--learner {other}"))}
    if learner != "rainbow":
        found["--save-replay"] = Ignored(why, ("--learner rainbow",))
    if not config.start_from:
        for flag in ("--start-rate", "--distil-frames"):
            found[flag] = Ignored("there is nobody to start from", ("--start-from",))
        return found | clocks_ignored(config)
    begins = "a pupil that starts from another begins where this would end"
    off = {"epsilon-frames": "epsilon"}
    if learner == "rainbow":
        off = {"epsilon": "final-epsilon", "epsilon-frames": "final-epsilon", "warm-frames": "", "warm-updates": ""}
    for name, instead in off.items():
        found[f"--{learner}.{name}"] = Ignored(begins, (f"--{learner}.{instead}",) if instead else ())
    if config.teacher in SCRIPTED:
        advice = {"rainbow": ["teacher-fraction", "final-teacher-fraction", "teacher-frames", "teacher-by", "bc-weight",
                              "final-bc-weight", "bc-frames", "bc-fall"], "pqn": ["distillation"]}[learner]  # fmt: skip
        why = "a pupil that starts from another takes no advice from the scripted teacher"
        found |= {f"--{learner}.{name}": Ignored(why, ("--teacher",)) for name in advice}
    return found | clocks_ignored(config)


# What settings were called when older runs were stored; groups end with a dot.
RENAMED: Final = {
    "widths": "pqn.widths",
    "epsilon": "pqn.epsilon",
    "epsilon_frames": "pqn.epsilon_frames",
    "distillation": "pqn.distillation",
    "exam_games": "eval_games",
    "exam_frames": "eval_frames",
    "exam_seconds": "eval_seconds",
    "exam_every": "eval_every",
    "rainbow.learner.": "rainbow.",
    "rainbow.teacher": "rainbow.teacher_fraction",
    "rainbow.final_teacher": "rainbow.final_teacher_fraction",
    "starts.first_level_share": "starts.first_level_fraction",
    "starts.restart_share": "starts.restart_fraction",
    "starts.situation_share": "starts.situation_fraction",
    "pqn.discount": "pqn.gamma",
    "pqn.trace": "pqn.lambda_",
    "pqn.gradient_limit": "pqn.max_grad_norm",
    "pqn.averaging": "pqn.ema",
    "rainbow.target_every": "rainbow.target_sync_every",
    "rainbow.gradient_limit": "rainbow.max_grad_norm",
    "rainbow.cloning": "rainbow.bc_weight",
    "rainbow.final_cloning": "rainbow.final_bc_weight",
    "rainbow.cloning_frames": "rainbow.bc_frames",
    "rainbow.cloning_fall": "rainbow.bc_fall",
    "rainbow.samples_per_frame": "rainbow.replay_ratio",
    "rainbow.averaging": "rainbow.ema",
    "rainbow.replay.steps": "rainbow.replay.n_step",
    "rainbow.replay.discount": "rainbow.replay.gamma",
    "rainbow.replay.exponent": "rainbow.replay.priority_alpha",
}


def upgraded_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Flat settings of a run from before Rainbow's network had a name, with the network that it had then."""
    old = {
        key: settings.pop(f"rainbow.network.{key}", None) for key in ("attention", "hidden", "depth", "visible_only")
    }
    if old["hidden"] is not None:
        settings["rainbow.network"] = "published" if old["attention"] else "plain"
        settings["rainbow.widths"] = [old["hidden"]] * old["depth"]
        settings["rainbow.stream_width"] = old["hidden"] // 2
        settings["visible_only"] = settings["visible_only"] or old["visible_only"]
    prefix = "rainbow.network."
    return {f"rainbow.{key.removeprefix(prefix)}" if key.startswith(prefix) else key: v for key, v in settings.items()}
