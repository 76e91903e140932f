"""The settings of a training on Echelon: stages of its curriculum, and presets."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from protege import ProtegeError
from protege.games.echelon.agents.network import NetworkConfig
from protege.games.echelon.task.rewards import RewardConfig
from protege.learn.optimise import find_device
from protege.learn.ppo import PPOConfig
from protege.runs.metrics import near
from protege.train.session import Ignored, clocks_ignored

SELF: Final = "self"  # the opponent that is the pupil itself, learning too


class BadTraining(ProtegeError):
    """Settings that do not go together."""


@dataclass(frozen=True)
class Stage:
    """What is practised: who fights whom where, and when that is good enough."""

    roster: str
    size: int  # columns on each side of the map
    length: int  # decisions, four a second
    opponents: tuple[tuple[str, float], ...]  # players' names and weights; SELF lets both sides learn
    evaluated_by: tuple[str, ...] = ("medium",)  # opponents in evaluations; the first is the one that counts
    ground: Literal["generated", "open", "wall"] = "generated"
    maps: int = 0  # that are played over and over; 0 for a new one in every battle
    goal: Literal["win", "arrive", "kill"] = "win"  # what counts as success in evaluations
    gate: float = 2.0  # success in an evaluation that ends the stage; above 1, only its fraction of the budget does
    fraction: float = 1.0  # of the budget: the stage ends then at the latest
    rewards: tuple[tuple[str, float], ...] = ()  # weights that differ from those of the training


_SCRIPTED: Final = (("medium", 0.25), ("hard", 0.5), ("expert", 0.25))
_NO_OUTCOME: Final = (("outcome_first", 0.0), ("outcome", 0.0))  # who is alone wins whatever it does
_NO_ZONE: Final = (("approach", 0.0), ("presence", 0.0), ("score", 0.0))
_FIGHT: Final = (*_NO_ZONE, ("outcome_first", 1.0))
_KILLS: Final = (*_NO_ZONE, *_NO_OUTCOME, ("damage", 0.5), ("kill", 1.0), ("assist", 0.5), ("own_fraction_first", 0.5))
STAGES: Final = {
    # What a learner that works must be able to do, from the least on.
    "O1": Stage("1v0", 40, 120, (("idle", 1.0),), ("idle",), goal="arrive", rewards=_NO_OUTCOME),
    "O2": Stage("1v1", 40, 240, (("idle", 1.0),), ("idle",), ground="open", goal="kill", rewards=_FIGHT),
    "O3": Stage("1v1", 40, 240, (("medium", 1.0),)),
    "O4": Stage("2v2", 40, 480, (("idle", 1.0),), ("idle", "hard"), ground="wall", rewards=_KILLS),
    "O5": Stage("5v5", 60, 240, (("medium", 1.0),), maps=1),
    "O6": Stage("10v10", 100, 500, (("medium", 1.0),), maps=1),
    "O7": Stage("10v10", 100, 500, (("medium", 1.0),), maps=100),
    # The way to a squad that beats all scripted ones: more mechs, larger maps, stronger opponents.
    "duel": Stage("1v1", 40, 240, (("easy", 0.5), ("medium", 0.5)), gate=0.7, fraction=0.05),
    "pair": Stage("2v2", 48, 240, (("easy", 0.25), ("medium", 0.5), (SELF, 0.25)), gate=0.7, fraction=0.05),
    "pack": Stage("5v5", 60, 320, (("medium", 0.25), ("hard", 0.5), (SELF, 0.25)), ("hard",), gate=0.7, fraction=0.2),
    "squad": Stage("10v10", 100, 500, (*_SCRIPTED,), ("expert", "hard")),
    "company": Stage("20v20", 100, 500, (*_SCRIPTED,), ("expert", "hard")),
}


class Curriculum:
    """The stages of a training, one after another; with a single stage it never moves."""

    def __init__(self, names: tuple[str, ...], stages: list[Stage]):
        self.names, self.stages = names, stages
        self.number, self.began = 0, 0.0  # the latter as a fraction of the budget

    @property
    def stage(self) -> Stage:
        return self.stages[self.number]

    @property
    def is_last(self) -> bool:
        return self.number + 1 == len(self.stages)

    def over(self, progress: float, success_low: float) -> str:
        """Why this stage ends here, or nothing; `success_low` is the lower end of the newest evaluation."""
        if self.is_last:
            return ""
        if success_low >= self.stage.gate:
            return f"success at least {success_low:.0%}"
        if progress - self.began >= self.stage.fraction:
            return "its fraction of the budget is used up"
        return ""

    def move_on(self, progress: float, why: str) -> str:
        """To the next stage; in words."""
        self.number, self.began = self.number + 1, progress
        return f"{self.names[self.number - 1]} ends ({why}); {self.names[self.number]} begins"

    def describe(self, opponents: str) -> str:
        """What is practised, and what comes after it."""
        stage, later = self.stage, ", ".join(self.names[self.number + 1 :])
        then = f"; then {later}" if later else ""
        return f"{self.names[self.number]}: {stage.roster} on {stage.size} x {stage.size}, against {opponents}{then}"


@dataclass(frozen=True)
class EchelonConfig:
    """Settings of a training on Echelon."""

    minutes: float = 60.0  # wall-clock budget, start-up and compilation included; 0 for none
    agent_steps: int = 0  # budget in decisions of single mechs instead of minutes; 0 for none
    # end early when the lower end of an evaluation's success rate reaches this and no advice is given any more
    until: float = 0.0
    seed: int = 1  # of the maps, the battles, the network and the exploration
    stages: tuple[str, ...] = ("squad",)  # stages of the curriculum, in order; an unknown name lists all
    opponents: tuple[str, ...] = ()  # in place of the stages' own: hard expert=0.5 self, a run or a checkpoint
    league: str = ""  # a league, by name or folder, whose players are the opponents; it keeps the results and copies
    # In that league: main learns to beat everybody, main-exploiter the newest copy of a main agent, league-exploiter
    # everybody. Exploiters begin with the weights of that copy, and begin again when they win 70 %.
    role: Literal["main", "main-exploiter", "league-exploiter"] = "main"
    agents: int = 640  # learning mechs that advance together, in as many battles as that takes
    horizon: int = 64  # decisions of each between two rounds of updates
    chunk: int = 16  # decisions in a chunk, the unit of backpropagation through time
    ppo: PPOConfig = PPOConfig()
    network: NetworkConfig = NetworkConfig()
    rewards: RewardConfig = RewardConfig()
    advisor: str = "expert"  # the scripted player whose advice is imitated at first
    imitation: float = 0.0  # weight of that advice at the start; 0 for none
    imitation_fraction: float = 0.3  # of the budget, over which the weight falls to 0
    start_from: str = ""  # a run, or a checkpoint, whose weights the training begins with
    eval_sampled: bool = True  # evaluate with sampled actions, as in training; otherwise with the likeliest ones
    eval_matches: int = 64  # held-out battles against each opponent of an evaluation, half from each side
    eval_seconds: float = 120.0  # least time between evaluations
    eval_every: int = 1_000_000  # agent-steps between evaluations of a deterministic run, which ignores the clock
    autosave_seconds: float = 120.0  # time between checkpoints
    threads: int = 0  # threads that play and learn; 0 for one per core, at most 2
    device: Literal["cpu", "cuda"] = "cpu"  # where updates are made; battles and what mechs choose stay on the CPU
    deterministic: bool = False  # evaluations between updates, budget in agent-steps: the same numbers every time


PRESETS: Final = {
    "smoke": EchelonConfig(
        minutes=0.5, stages=("O2",), agents=32, horizon=32, network=NetworkConfig(32, 16, 8),
        ppo=PPOConfig(minibatches=2), eval_matches=4, eval_seconds=10.0, eval_every=5_000, autosave_seconds=5.0,
    ),
    # First the scripted expert is imitated, in large steps; what is left of the budget goes beyond it.
    "laptop": EchelonConfig(
        imitation=3.0, imitation_fraction=0.4,
        ppo=PPOConfig(learning_rate=1e-3, final_learning_rate=5e-5, entropy=0.01, final_entropy=0.002),
    ),
    "full": EchelonConfig(
        minutes=0.0, agent_steps=1_000_000_000, stages=("duel", "pair", "pack", "squad"), eval_matches=200,
        eval_seconds=900.0, autosave_seconds=300.0,
    ),
}  # fmt: skip


def find_stage(name: str) -> Stage:
    if name not in STAGES:
        raise BadTraining(f"no stage is called {name!r}; there are {', '.join(STAGES)}{near(name, STAGES)}")
    return STAGES[name]


def stages_of(config: EchelonConfig) -> list[Stage]:
    """The stages of a training, with the opponents that were asked for; those of a league come later."""
    found = [find_stage(name) for name in config.stages]
    if config.opponents and not config.league:
        found = [replace(stage, opponents=_weighted(config.opponents)) for stage in found]
    return found


def _weighted(opponents: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """Names and weights of opponents that are given as `hard`, or `hard=0.5`."""
    found = []
    for word in opponents:
        name, _, weight = word.partition("=")
        try:
            found.append((name, float(weight or 1.0)))
        except ValueError:
            found.append((name, -1.0))
        if not name or not found[-1][1] > 0.0:
            raise BadTraining(f"an opponent is given as NAME or NAME=WEIGHT with a weight above 0; got {word!r}")
    return tuple(found)


def alone_in(opponents: tuple[tuple[str, float], ...]) -> float:
    """The fraction of battles in which the pupil leads both sides."""
    return sum(weight for name, weight in opponents if name == SELF) / sum(weight for _, weight in opponents)


def self_fraction(config: EchelonConfig, stage: Stage) -> float:
    """The same where a league gives the opponents."""
    if config.role != "main":
        return 0.0
    return sum(weight for _, weight in _weighted(config.opponents)) if config.opponents else alone_in(stage.opponents)


def check(config: EchelonConfig) -> None:
    """Raise if the settings do not go together."""
    c, budget, weighted = config, config.minutes or config.agent_steps, _weighted(config.opponents)
    others = any(name != SELF for name, _ in weighted) or sum(weight for _, weight in weighted) >= 1.0
    for wrong, why in (
        (c.deterministic and not c.agent_steps,
         "a deterministic run needs a budget in agent-steps, because clocks differ: add --agent-steps 5000000"),
        (c.deterministic and c.device != "cpu",
         f"a deterministic run learns on the CPU: leave out --device {c.device}"),
        (not budget and (c.imitation > 0 or len(c.stages) > 1),
         "--imitation falls and --stages end by fractions of a budget, so they need one: "
         "add --minutes 60 or --agent-steps 50000000"),
        (c.horizon % c.chunk, f"a horizon is cut into whole chunks; {c.horizon} is no multiple of {c.chunk}"),
        (c.ppo.gamma != c.rewards.gamma,
         f"learner and rewards must discount alike; got {c.ppo.gamma} and {c.rewards.gamma}: "
         "set both --ppo.gamma and --rewards.gamma"),
        ((c.ppo.prediction > 0) != c.network.predicts,
         "--ppo.prediction and --network.predicts go together: set both or neither"),
        (c.role != "main" and not c.league, f"--role {c.role} is what a pupil is in a league: add --league NAME"),
        (c.role != "main" and c.opponents, "an exploiter meets whom the league chooses: leave out --opponents"),
        (c.league and others,
         "the league chooses the opponents; beside it there may be battles of the pupil against itself, "
         f"as --opponents self=0.2; got {' '.join(c.opponents)}"),
        (not 0.0 <= c.until < 1.0, f"--until is a fraction of successes, at least 0 and below 1; got {c.until:g}"),
        (not c.stages, f"at least one stage is needed; there are {', '.join(STAGES)}"),
        (c.eval_matches < 2 or c.eval_matches % 2,
         f"evaluations are played from both sides, so matches must be 2, 4, 6 ...; got {c.eval_matches}"),
    ):  # fmt: skip
        if wrong:
            raise BadTraining(why)
    find_device(config.device)
    stages_of(config)


def ignored(config: EchelonConfig) -> dict[str, Ignored]:
    """Settings that have no effect with the others as they are."""
    found = clocks_ignored(config)
    if not config.imitation:
        advice = Ignored("nobody's advice is imitated", ("--imitation 3",))
        found |= {"--advisor": advice, "--imitation-fraction": advice}
    return found


# What settings were called when older runs were stored.
RENAMED: Final = {
    "imitation_share": "imitation_fraction",
    "rewards.own_share_first": "rewards.own_fraction_first",
    "rewards.own_share": "rewards.own_fraction",
    "sampled_exams": "eval_sampled",
    "exam_matches": "eval_matches",
    "exam_seconds": "eval_seconds",
    "exam_every": "eval_every",
    "ppo.discount": "ppo.gamma",
    "ppo.trace": "ppo.gae_lambda",
    "ppo.gradient_limit": "ppo.max_grad_norm",
    "ppo.kl_limit": "ppo.target_kl",
    "ppo.parts": "ppo.microbatches",
    "rewards.discount": "rewards.gamma",
}
