"""Where a learner takes its experience from: the simulator, or arcade clients behind the bridge.

A source is told which pupil plays and how it explores (`follow`), asks the teacher for advice, and hands out what came
of that, in the order of each stream: as `Transitions` for a memory, or as a `Rollout` for a learner without one.
Nothing after it can tell which source it has.
"""

import copy
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.agents.compiled import quick
from protege.games.tempest.agents.players import Player
from protege.games.tempest.agents.rainbow import RainbowPupil
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import BridgeConfig, step_back
from protege.games.tempest.arcade.streams import Game
from protege.games.tempest.task.observation import VALUES
from protege.games.tempest.training.behaviour import SCRIPTED_TEACHER, Behaviour, Exploration, Teacher
from protege.games.tempest.training.bridge_process import PUPIL, BridgeProcess, Finished, Setup, Status, Transitions
from protege.games.tempest.training.columns import Columns, Moves
from protege.games.tempest.training.config import TempestConfig
from protege.games.tempest.training.evaluation import Outcome, Pupil, held_out
from protege.games.tempest.training.simulator import Episode, Simulator
from protege.learn.pqn import Rollout
from protege.train.controls import Report
from protege.train.session import Cancelled, Context, Experience, Figures

PIECE_FRAMES: Final = 256  # of arcade clients are learned from at a time
PIECE_SECONDS: Final = 0.25  # or what came in so long
MOST_UPDATES: Final = 16  # at a time where arcade clients do not wait: a learner that cannot keep up makes fewer
MOST_DEATHS: Final = 3  # of the bridge's process within `DEATHS_S` seconds: then something is wrong
DEATHS_S: Final = 60.0
SNAPSHOT, REFERENCE = PUPIL + 1, PUPIL + 2  # slots of an evaluation: the pupil, and whoever it is compared with
MOST_REFERENCE_GAMES: Final = 400  # of whoever does not change are kept, the newest

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
    decisions: int = 0  # calls that this time went into, each on many games


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
    def learned(self, frames: float) -> None: ...  # so many more have had their updates
    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]: ...  # stop playing; what is left
    def figures(self) -> Figures: ...  # to log
    def measure(
        self, player: Pupil, others: Mapping[str, Player], measured: dict[str, Outcome], cancelled: threading.Event
    ) -> Outcome:
        """Games of a player without exploration; those of others are brought up to date in `measured`."""

    def cpu_s(self) -> float: ...  # processor time of other processes, as of the last figures
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
        return Played(room, steps, games.state(), games.taken_episodes(), simulating, acting, self.piece)

    def transitions(self, played: Experience) -> Sequence[Transitions]:
        if not played.steps:
            return ()
        piece: _Piece = played.content
        r = piece.rollout
        streams = np.tile(np.arange(len(self.simulator)), self.piece)
        never = np.zeros(len(streams), np.bool_)  # games are only replaced where a life, an episode, has ended
        arrays: tuple[Any, ...] = (r.features[:-1], r.actions, r.rewards, r.terminated, piece.actors, r.advice)
        observations, actions, rewards, terminated, actors, advice = (a.reshape(-1, *a.shape[2:]) for a in arrays)
        return (Transitions(streams, observations, actions, rewards, terminated, never, actors, advice),)

    def rollout(self, played: Experience) -> Rollout | None:
        piece: _Piece = played.content
        piece.rollout.values[-1] = np.nan  # nobody has decided there yet
        return piece.rollout

    def learned(self, frames: float) -> None:
        """The games wait anyway."""

    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]:
        return ()  # a resumed run plays them again

    def cpu_s(self) -> float:
        return 0.0  # this process alone

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


@dataclass
class _Measuring:
    """An evaluation on the clients that is under way: two slots, and as many games of each."""

    number: int  # of the players in its slots
    players: Mapping[int, tuple[Player, Exploration]]  # by slot
    wanted: int  # games of each
    games: dict[int, list[Game]] = field(default_factory=lambda: {SNAPSHOT: [], REFERENCE: []})
    began: float = field(default_factory=time.monotonic)

    def missing(self) -> dict[int, int]:
        return {slot: self.wanted - len(self.games[slot]) for slot in self.players}

    def outcome(self, slot: int) -> Outcome:
        games = self.games[slot]
        score, deaths, level = (np.array([getattr(game, name) for game in games]) for name in Outcome.NAMES)
        truncated, seconds = sum(game.truncated for game in games), time.monotonic() - self.began
        return Outcome(
            score.astype(np.float64), deaths, level, truncated, seconds, "games of arcade clients", busy=False
        )


def _portable(pupil: Any) -> Any:
    """A player for another process: compiled, or torch on its CPU."""
    made = quick(pupil)
    if isinstance(made, RainbowPupil) and made.network.support.device.type != "cpu":
        return RainbowPupil(copy.deepcopy(made.network).cpu())
    return made


class ArcadeSource:
    """Whoever connects to the bridge, which has a process of its own."""

    place = "on arcade clients, and some of their games are evaluations"
    can_wait = False
    title = "arcade clients, "

    def __init__(
        self, config: TempestConfig, context: Context, listening: BridgeConfig, teacher: Teacher = SCRIPTED_TEACHER,
        eyes: Eyes = PLAIN_EYES,
    ):  # fmt: skip
        own = config.rainbow
        self.config, self.context = config, context
        self.setup = Setup(
            replace(listening, hold_s=own.reply_delay), context.run.name, config.seed, config.shaping,
            Teacher(teacher.name, teacher.runs, quick(teacher.player)),
        )  # fmt: skip
        self.columns = Columns(config.pqn.horizon, eyes.width, eyes.see)
        self.measuring: _Measuring | None = None
        self.played = threading.Condition()  # an evaluation's game was
        self.most_updates = 1 << 30 if own.reply_delay else MOST_UPDATES
        self.top_level = config.starts.top_level
        self.reports: Mapping[str, Callable[[], Report | str]] = {"clients": self._report}
        self.player: tuple[Pupil, Exploration] | None = None
        self.installed = 0  # players so far
        self.streams = 0  # number of the first stream: streams of a process that died are never gone on with
        self.frames_learned = 0.0  # of those that came from this process
        self.deaths: list[float] = []
        self.before = Status()
        self.dead_cpu_s = 0.0  # processor time of bridges that died
        self.bridge: BridgeProcess

    def follow(self, pupil: Pupil, explore: Exploration) -> None:
        known, self.player = self.player, (pupil, explore)
        if known is None or not hasattr(self, "bridge"):
            return
        if known[0].network is not pupil.network:
            self.installed += 1
            self.bridge.install(PUPIL, self.installed, _portable(pupil))
        if known[1] != explore:
            self.bridge.explore(PUPIL, explore)

    def begin(self, resumed: bool) -> None:
        self._start()
        step_back()  # whoever calls this learns
        listening = self.setup.listening
        self.context.note(f"bridge: {listening.host} port {self.bridge.port}, up to {listening.most_clients} clients")

    def _start(self) -> None:
        assert self.player is not None, "somebody must play"
        pupil, explore = self.player
        self.bridge = BridgeProcess(
            self.setup,
            _portable(pupil),
            explore=explore,
            tell=self.context.note,
            save=lambda: self.context.run.send("save"),
        )
        self.setup = replace(self.setup, listening=replace(self.setup.listening, port=self.bridge.port))
        with self.played:
            self._let_measure()

    def room(self) -> None:
        return None

    def collect(self, room: Any) -> Played:
        if not self.bridge.is_alive():
            self._start_again()
        return self._fetch(PIECE_FRAMES, PIECE_SECONDS)

    def _start_again(self) -> None:
        """The bridge has died, of which clients know nothing: they connect again by themselves."""
        code, now = self.bridge.close(), time.monotonic()  # raises what it failed with
        self.deaths = [then for then in self.deaths if now - then < DEATHS_S] + [now]
        if len(self.deaths) >= MOST_DEATHS:
            raise ProtegeError(f"the bridge's process ended {MOST_DEATHS} times in a minute, with code {code}")
        self.context.note(f"the bridge's process ended, with code {code}: it is started again", event="bridge died")
        self.streams += self.setup.listening.most_clients
        self.columns.pending.clear()
        self.frames_learned, self.dead_cpu_s, self.before = 0.0, self.cpu_s(), Status()
        self._start()

    def _fetch(self, least: int = 0, seconds: float = 0.0) -> Played:
        batch = self.bridge.fetch(least, seconds)
        for finished in batch.games:
            self._finish(finished)
        found = [made._replace(streams=made.streams + self.streams) for made in batch.transitions]
        return Played(found, batch.frames, None, batch.episodes, 0.0, batch.acting_s, batch.decisions)

    def _finish(self, finished: Finished) -> None:
        game, now = finished.game, self.measuring
        if now is not None and finished.slot in now.players and finished.first == finished.last == now.number:
            with self.played:
                now.games[finished.slot].append(game)
                self.played.notify()
        ending, levels = "cut" if game.truncated else "over", f"level {game.start_level} to {game.level}"
        self.context.note(f"client {game.client}: game {ending}, {game.score:,} points, {levels}")

    def transitions(self, played: Experience) -> Sequence[Transitions]:
        found: list[Transitions] = played.content
        return found

    def rollout(self, played: Experience) -> Rollout | None:
        for t in self.transitions(played):
            moves = Moves(t.observations, t.actions, t.rewards, t.terminated, t.truncated, t.advice)
            self.columns.add(t.streams, moves)
        return self.columns.rollout(-(-self.config.pqn.minibatch // self.config.pqn.horizon))

    def measure(
        self, player: Pupil, others: Mapping[str, Player], measured: dict[str, Outcome], cancelled: threading.Event
    ) -> Outcome:
        """Some games of the clients, and as many of one other: what it started from, or its teacher."""
        role = next((role for role in ("start", "own_teacher") if role in others), "client_teacher")
        reference, explore = (others[role], Exploration()) if role == "start" else (player, Exploration(teacher=1.0))
        for left in {"own_teacher"} & others.keys() - {role, *measured}:
            measured[left] = held_out(others[left], self.config, cancelled)
        with self.played:
            self.installed += 1
            players = {SNAPSHOT: (player, Exploration()), REFERENCE: (reference, explore)}
            now = self.measuring = _Measuring(self.installed, players, self.config.client_games)
            self._let_measure()
            while any(missing > 0 for missing in now.missing().values()):
                self.played.wait(0.2)
                if cancelled.is_set():
                    raise Cancelled
            self.measuring = None
            self._let_measure()
        found, before = now.outcome(REFERENCE), measured.get(role)
        measured[role] = found if before is None else before.joined(found).newest(MOST_REFERENCE_GAMES)
        return now.outcome(SNAPSHOT)

    def _let_measure(self) -> None:
        """Tell the bridge which games are an evaluation's, if one is under way: one in so many, in turn."""
        now, others = self.measuring, [PUPIL] * (self.config.client_every - 1)
        if now is None:
            self.bridge.plan((PUPIL,))
            return
        for slot, (player, explore) in now.players.items():
            self.bridge.install(slot, now.number, _portable(player))
            self.bridge.explore(slot, explore)
        self.bridge.plan((SNAPSHOT, *others, REFERENCE, *others), now.missing(), self.config.eval_frames)

    def learned(self, frames: float) -> None:
        self.frames_learned += frames
        self.bridge.learned(int(self.frames_learned))

    def cpu_s(self) -> float:
        return self.dead_cpu_s + self.before.cpu_s

    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]:
        self.bridge.close()
        return [*ahead, self._fetch()]

    def figures(self) -> Figures:
        now, before = self.bridge.status(), self.before
        self.before = now
        refused = sum(now.tallies[fault] for fault in ("wrong length", *wire.FAULTS))
        slowest = max((client.latency_ms for client in now.clients), default=0.0)
        held_ms = 1000 * (now.held_s - before.held_s) / max(1, now.frames - before.frames)
        return {"clients": len(now.clients), "latency_ms": slowest, "held_ms": held_ms, "refused": refused}

    def _report(self) -> Report:
        now = self.bridge.status()
        rows = [
            [
                f"{client.place}", client.name or "-", client.address, f"{client.seconds / 60:,.0f}",
                f"{client.frames_per_s:,.0f}", f"{client.latency_ms:.1f}", f"{client.frames:,}", f"{client.refused:,}",
                client.activity, f"{client.level}", f"{client.score:,}",
            ]
            for client in now.clients
        ]  # fmt: skip
        columns = "client name address minutes frames/s ms frames refused now level score".split()
        so_far = ", ".join(f"{what} {count:,}" for what, count in now.tallies.items())
        return Report(f"{len(rows)} clients; so far: {so_far or 'nobody came'}", columns, rows)

    def state(self) -> None:
        return None

    def restore(self, state: Mapping[str, Any] | None, top_level: int) -> None:
        self.top_level = top_level

    def raise_top_level(self, reached: float) -> None:
        """Clients start where they like."""

    def close(self) -> None:
        if hasattr(self, "bridge"):
            self.bridge.close()
