"""Where a learner takes its experience from: the simulator, or arcade clients behind the bridge.

A source is told which pupil plays and how it explores (`follow`), asks the teacher for advice, and hands out what came
of that, in the order of each stream: as `Transitions` for a memory, or as a `Rollout` for a learner without one.
Nothing after it can tell which source it has.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from protege.games.tempest.agents.players import Player
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, step_back
from protege.games.tempest.arcade.streams import Decisions, Game, Places, Steps
from protege.games.tempest.task.env import Frames
from protege.games.tempest.task.observation import VALUES
from protege.games.tempest.task.rewards import learned_reward
from protege.games.tempest.training.behaviour import SCRIPTED_TEACHER, Behaviour, Exploration, Teacher
from protege.games.tempest.training.config import TempestConfig
from protege.games.tempest.training.evaluation import Outcome, Pupil, held_out
from protege.games.tempest.training.simulator import Episode, Simulator
from protege.learn.pqn import Rollout
from protege.learn.replay import Actor
from protege.seeds import Purpose, random_stream
from protege.train.controls import Report
from protege.train.session import Context, Experience, Figures

PIECE_FRAMES: Final = 256  # of arcade clients are learned from at a time
PIECE_SECONDS: Final = 0.25  # or what came in so long
MOST_UPDATES: Final = 16  # at a time: arcade clients do not wait, so a learner that cannot keep up makes fewer

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Eyes(NamedTuple):
    """What a learner keeps of observations."""

    width: int  # numbers
    see: Callable[[Floats, Floats], None]  # writes what it sees of some observations into an array
    values: bool = False  # and of what it expects


PLAIN_EYES: Final = Eyes(VALUES, lambda observation, seen: np.copyto(seen, observation))  # all of them


@dataclass
class Played(Experience):
    """Frames of training games, and the lives that ended in them."""

    episodes: list[Episode] = field(default_factory=list)
    simulating_s: float = 0.0  # processor time
    acting_s: float = 0.0


class Transitions(NamedTuple):
    """Moves of many streams and what came of each, as the replay takes them."""

    streams: Ints
    observations: Floats
    actions: Ints
    rewards: Floats
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    actors: npt.NDArray[Any]
    advice: Ints


class Source(Protocol):
    """What a session needs of the games, wherever they are played."""

    title: str  # what is played, in words
    place: str  # and where
    most_updates: int  # that what was collected at a time allows
    can_wait: bool  # whether games stand still while nobody plays them
    reports: Mapping[str, Callable[[], Report | str]]  # commands that it answers

    @property
    def top_level(self) -> int: ...  # highest level at which games start
    def raise_top_level(self, reached: float) -> None: ...  # the pupil reaches this level
    def follow(self, pupil: Pupil, explore: Exploration) -> None: ...  # who plays from now on, and how
    def begin(self, resumed: bool) -> None: ...  # get ready to play
    def room(self) -> Any: ...  # for what is collected at a time
    def collect(self, room: Any) -> Played: ...  # play on, or take what was played meanwhile
    def transitions(self, played: Experience) -> Sequence[Transitions]: ...  # what is to be remembered of it
    def rollout(self, played: Experience) -> Rollout | None: ...  # the same in columns of one length, if there are any
    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]: ...  # stop playing; what is left
    def figures(self) -> Figures: ...  # to log
    def measure(
        self, player: Player, others: Mapping[str, Player], measured: dict[str, Outcome], cancelled: threading.Event
    ) -> Outcome:
        """Games of a player without exploration; those of others are brought up to date in `measured`."""

    def state(self) -> dict[str, Any] | None: ...  # what a checkpoint keeps of the games, if anything
    def restore(self, state: Mapping[str, Any] | None, top_level: int) -> None: ...  # of this source or of another one
    def close(self) -> None: ...


@dataclass
class _Piece:
    """Some frames of all games, and what the learner saw after them; arrays are (frames, games, ...), + one longer."""

    rollout: Rollout
    actors: npt.NDArray[np.int8]


class SimulatorSource:
    """Games of the simulator, advanced together."""

    place = "simulator"
    most_updates = 1 << 30
    can_wait = True

    def __init__(self, config: TempestConfig, teacher: Teacher = SCRIPTED_TEACHER, eyes: Eyes = PLAIN_EYES):
        c, self.teacher, self.eyes = config, teacher, eyes
        games, self.piece = (c.pqn.games, c.pqn.horizon) if c.learner == "pqn" else (c.rainbow.games, c.rainbow.piece)
        self.config, self.simulator = c, Simulator(games, c.starts, seed=c.seed, shaping=c.shaping)
        self.behaviour = Behaviour(self.simulator.random)
        self.title = f"{games} games, "
        self.reports: Mapping[str, Callable[[], Report | str]] = {}
        self.player: tuple[Pupil, Exploration]

    @property
    def top_level(self) -> int:
        return self.simulator.top_level

    def follow(self, pupil: Pupil, explore: Exploration) -> None:
        self.player = pupil, explore

    def begin(self, resumed: bool) -> None:
        if not resumed:
            self.simulator.warm_up()

    def room(self) -> _Piece:
        games = len(self.simulator)
        rollout = Rollout.empty(self.piece, games, self.eyes.width)
        return _Piece(rollout, np.zeros((self.piece, games), np.int8))

    def collect(self, room: _Piece) -> Played:
        games, piece, simulating, began = self.simulator, room.rollout, 0.0, time.thread_time()
        pupil: Any
        pupil, explore = self.player
        games.remember()
        for t in range(self.piece):
            self.eyes.see(games.frames.observation, piece.features[t])
            piece.advice[t] = self.teacher.advise(games.frames)
            greedy, piece.values[t] = pupil.best(piece.features[t]) if self.eyes.values else (None, np.nan)
            chosen = self.behaviour.decide(games.frames, pupil.act, explore, piece.advice[t], greedy)
            piece.actions[t], room.actors[t] = chosen.actions, chosen.actors
            then = time.thread_time()
            frames = games.step(chosen.actions)
            simulating += time.thread_time() - then
            piece.rewards[t] = games.rewards() + chosen.penalties
            piece.terminated[t] = frames.terminated
            games.replace_lost()
        self.eyes.see(games.frames.observation, piece.features[self.piece])
        acting = time.thread_time() - began - simulating
        steps = self.piece * len(games)
        return Played(room, steps, games.state(), games.taken_episodes(), simulating, acting)

    def transitions(self, played: Experience) -> Sequence[Transitions]:
        if not played.steps:
            return ()
        piece: _Piece = played.content
        r = piece.rollout
        streams = np.tile(np.arange(len(self.simulator)), self.piece)
        never = np.zeros(len(streams), np.bool_)  # games are only replaced where a life, an episode, has ended
        observations, actions, rewards, terminated, actors, advice = (
            array.reshape(-1, *array.shape[2:])
            for array in (r.features[:-1], r.actions, r.rewards, r.terminated, piece.actors, r.advice)
        )
        return (Transitions(streams, observations, actions, rewards, terminated, never, actors, advice),)

    def rollout(self, played: Experience) -> Rollout | None:
        piece: _Piece = played.content
        piece.rollout.values[-1] = np.nan  # nobody has decided there yet
        return piece.rollout

    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]:
        return ()  # a resumed run plays them again

    def figures(self) -> Figures:
        return {}

    def measure(
        self, player: Player, others: Mapping[str, Player], measured: dict[str, Outcome], cancelled: threading.Event
    ) -> Outcome:
        for role, other in others.items():
            if role not in measured:  # the games are the same every time
                measured[role] = held_out(other, self.config, cancelled)
        return held_out(player, self.config, cancelled, record=True)

    def state(self) -> dict[str, Any]:
        return self.simulator.state()

    def restore(self, state: Mapping[str, Any] | None, top_level: int) -> None:
        if state is None:  # the run comes from arcade clients
            self.simulator.warm_up()
        else:
            self.simulator.restore(dict(state))
        self.simulator.top_level = top_level

    def raise_top_level(self, reached: float) -> None:
        self.simulator.raise_top_level(reached)

    def close(self) -> None:
        """There is nothing to let go of."""


class _Clients(Agent):
    """Plays the clients, in the bridge's thread, and keeps what came of it until it is fetched."""

    def __init__(self, source: "ArcadeSource", places: int, name: str):
        self.source, self.name = source, name
        self.arrived = threading.Condition()
        self.transitions: list[Transitions] = []
        self.frames = 0
        self.episodes: list[Episode] = []
        self.life_frames, self.life_reward = np.zeros(places, np.int64), np.zeros(places)
        self.levels = np.ones(places, np.int64)
        self.acting_s = 0.0

    def control(self, actor: int) -> str:
        return Actor(actor).name.lower()

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        began = time.thread_time()
        source = self.source
        pupil, explore = source.player
        decided = source.behaviour.decide(frames, pupil.act, explore, source.teacher.advise(frames))
        self.levels[clients] = frames.level
        self.acting_s += time.thread_time() - began
        return decided

    def learn(self, steps: Steps) -> None:
        played = ~steps.truncated
        clients = steps.clients[played]
        self.life_frames[clients] += 1
        self.life_reward[clients] += steps.objectives[played]
        rewards = learned_reward(steps.objectives, steps.rewards, self.source.shaping) + steps.penalties
        made = Transitions(
            steps.clients, steps.observations, steps.actions, rewards, steps.terminated, steps.truncated,
            np.maximum(steps.actors, Actor.PUPIL), steps.advice,
        )  # fmt: skip
        with self.arrived:
            for c in steps.clients[steps.terminated].tolist():
                self.episodes.append(Episode(int(self.life_frames[c]), float(self.life_reward[c]), int(self.levels[c])))
            self.transitions.append(made)
            self.frames += int(played.sum())
            if self.frames >= PIECE_FRAMES:
                self.arrived.notify()
        over = steps.clients[steps.terminated | steps.truncated]
        self.life_frames[over], self.life_reward[over] = 0, 0.0

    def finish(self, game: Game) -> None:
        ending = "cut" if game.truncated else "over"
        self.note(
            f"client {game.client}: game {ending}, {game.score:,} points, level {game.start_level} to {game.level}"
        )

    def save(self) -> None:
        self.source.context.run.send("save")

    def note(self, text: str) -> None:
        self.source.context.note(text)

    def fetch(self) -> Played:
        """What has come in since the last time, or comes in now."""
        with self.arrived:
            self.arrived.wait_for(lambda: self.frames >= PIECE_FRAMES, PIECE_SECONDS)
            played = Played(self.transitions, self.frames, None, self.episodes, 0.0, self.acting_s)
            self.transitions, self.frames, self.episodes, self.acting_s = [], 0, [], 0.0
        return played


class ArcadeSource:
    """Whoever connects to the bridge."""

    place = "on arcade clients, evaluations on the simulator"
    most_updates = MOST_UPDATES
    can_wait = False
    title = ""

    def __init__(
        self, config: TempestConfig, context: Context, listening: BridgeConfig, teacher: Teacher = SCRIPTED_TEACHER
    ):
        self.config, self.context, self.listening, self.shaping = config, context, listening, config.shaping
        self.teacher, self.behaviour = teacher, Behaviour(random_stream(config.seed, Purpose.ARCADE))
        self.top_level = config.starts.top_level
        self.reports: Mapping[str, Callable[[], Report | str]] = {"clients": self._report}
        self.clients = _Clients(self, listening.most_clients, context.run.name)
        self.player: tuple[Pupil, Exploration]
        self.bridge: Bridge

    def follow(self, pupil: Pupil, explore: Exploration) -> None:
        self.player = pupil, explore

    def begin(self, resumed: bool) -> None:
        self.bridge = Bridge(self.clients, self.listening)
        step_back()  # whoever calls this learns
        where = f"{self.listening.host} port {self.bridge.port}"
        self.context.note(f"bridge: {where}, up to {self.listening.most_clients} clients")

    def room(self) -> None:
        return None

    def collect(self, room: Any) -> Played:
        if not self.bridge.is_alive():
            self.bridge.close()  # raises what ended it
        return self.clients.fetch()

    def transitions(self, played: Experience) -> Sequence[Transitions]:
        found: list[Transitions] = played.content
        return found

    def rollout(self, played: Experience) -> Rollout | None:
        return None

    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]:
        self.bridge.close()
        return [*ahead, self.clients.fetch()]

    def figures(self) -> Figures:
        clients = self.bridge.clients()
        refused = sum(self.bridge.tallies[fault] for fault in ("wrong length", *wire.FAULTS))
        slowest = max((client.latency_ms for client in clients), default=0.0)
        return {"clients": len(clients), "latency_ms": slowest, "refused": refused}

    def _report(self) -> Report:
        rows = [
            [
                f"{client.place}", client.name or "-", client.address, f"{client.seconds / 60:,.0f}",
                f"{client.frames_per_s:,.0f}", f"{client.latency_ms:.1f}", f"{client.frames:,}", f"{client.refused:,}",
                client.activity, f"{client.level}", f"{client.score:,}",
            ]
            for client in self.bridge.clients()
        ]  # fmt: skip
        columns = "client name address minutes frames/s ms frames refused now level score".split()
        so_far = ", ".join(f"{what} {count:,}" for what, count in self.bridge.tallies.copy().items())
        return Report(f"{len(rows)} clients; so far: {so_far or 'nobody came'}", columns, rows)

    def measure(
        self, player: Player, others: Mapping[str, Player], measured: dict[str, Outcome], cancelled: threading.Event
    ) -> Outcome:
        for role, other in others.items():
            if role not in measured:
                measured[role] = held_out(other, self.config, cancelled)
        return held_out(player, self.config, cancelled, record=True)

    def state(self) -> None:
        return None

    def restore(self, state: Mapping[str, Any] | None, top_level: int) -> None:
        self.top_level = top_level

    def raise_top_level(self, reached: float) -> None:
        """Clients start where they like."""

    def close(self) -> None:
        if hasattr(self, "bridge"):
            self.bridge.close()
