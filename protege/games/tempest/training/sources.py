"""Where a learner with a memory takes its experience from: the simulator, or arcade clients behind the bridge.

A source is told which pupil plays and how it explores (`follow`), and hands out what came of that (`Transitions`), in
the order of each stream. Nothing after it can tell which one it has.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.agents.compiled import quick
from protege.games.tempest.agents.rainbow import RainbowPupil
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import BridgeConfig, step_back
from protege.games.tempest.task.actions import joint_actions
from protege.games.tempest.task.observation import VALUES
from protege.games.tempest.training.behaviour import Behaviour, Exploration
from protege.games.tempest.training.bridge_process import PUPIL, BridgeProcess, Finished, Setup, Status, Transitions
from protege.games.tempest.training.config import TempestConfig
from protege.games.tempest.training.session import Played
from protege.games.tempest.training.simulator import Simulator
from protege.train.controls import Report
from protege.train.session import Context, Experience, Figures

PIECE_FRAMES: Final = 256  # of arcade clients are learned from at a time
PIECE_SECONDS: Final = 0.25  # or what came in so long
MOST_UPDATES: Final = 16  # at a time where arcade clients do not wait: a learner that cannot keep up makes fewer
MOST_DEATHS: Final = 3  # of the bridge's process within `DEATHS_S` seconds: then something is wrong
DEATHS_S: Final = 60.0

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


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
    def follow(self, pupil: RainbowPupil, explore: Exploration) -> None: ...  # who plays from now on, and how
    def begin(self, resumed: bool) -> None: ...  # get ready to play
    def room(self) -> Any: ...  # for what is collected at a time
    def collect(self, room: Any) -> Played: ...  # play on, or take what was played meanwhile
    def transitions(self, played: Experience) -> Sequence[Transitions]: ...  # what is to be remembered of it
    def learned(self, frames: float) -> None: ...  # so many more have had their updates
    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]: ...  # stop playing; what is left
    def figures(self) -> Figures: ...  # to log
    def cpu_s(self) -> float: ...  # processor time of other processes, as of the last figures
    def state(self) -> dict[str, Any] | None: ...  # what a checkpoint keeps of the games, if anything
    def restore(self, state: Mapping[str, Any] | None, top_level: int) -> None: ...  # of this source or of another one
    def close(self) -> None: ...


@dataclass
class _Slice:
    """Some frames of all games; arrays are (frames, games, ...)."""

    observations: Floats
    actions: Ints
    rewards: Floats
    terminated: npt.NDArray[np.bool_]
    actors: npt.NDArray[np.int8]
    advice: Ints


class SimulatorSource:
    """Games of the simulator, advanced together."""

    place = "simulator"
    most_updates = 1 << 30
    can_wait = True

    def __init__(self, config: TempestConfig):
        c = self.own = config.rainbow
        self.simulator = Simulator(c.games, config.starts, seed=config.seed, shaping=config.shaping)
        self.behaviour = Behaviour(self.simulator.random)
        self.title = f"{c.games} games, "
        self.reports: Mapping[str, Callable[[], Report | str]] = {}
        self.player: tuple[RainbowPupil, Exploration]

    @property
    def top_level(self) -> int:
        return self.simulator.top_level

    def follow(self, pupil: RainbowPupil, explore: Exploration) -> None:
        self.player = pupil, explore

    def begin(self, resumed: bool) -> None:
        if not resumed:
            self.simulator.warm_up()

    def room(self) -> _Slice:
        t, n = self.own.piece, self.own.games
        return _Slice(
            observations=np.zeros((t, n, VALUES), np.float32),
            actions=np.zeros((t, n), np.int64),
            rewards=np.zeros((t, n), np.float32),
            terminated=np.zeros((t, n), np.bool_),
            actors=np.zeros((t, n), np.int8),
            advice=np.zeros((t, n), np.int64),
        )

    def collect(self, room: _Slice) -> Played:
        games, simulating, began = self.simulator, 0.0, time.thread_time()
        pupil, explore = self.player
        games.remember()
        for t in range(self.own.piece):
            room.observations[t] = games.frames.observation
            room.advice[t] = joint_actions(games.frames.advice)
            decided = self.behaviour.decide(games.frames, pupil.act, explore)
            room.actions[t], room.actors[t] = decided.actions, decided.actors
            then = time.thread_time()
            frames = games.step(decided.actions)
            simulating += time.thread_time() - then
            room.rewards[t] = games.rewards() + decided.penalties
            room.terminated[t] = frames.terminated
            games.replace_lost()
        acting = time.thread_time() - began - simulating
        steps = self.own.piece * self.own.games
        return Played(room, steps, games.state(), games.taken_episodes(), simulating, acting, self.own.piece)

    def transitions(self, played: Experience) -> Sequence[Transitions]:
        if not played.steps:
            return ()
        piece: _Slice = played.content
        streams = np.tile(np.arange(self.own.games), self.own.piece)
        never = np.zeros(len(streams), np.bool_)  # games are only replaced where a life, an episode, has ended
        observations, actions, rewards, terminated, actors, advice = (
            array.reshape(-1, *array.shape[2:]) for array in vars(piece).values()
        )
        return (Transitions(streams, observations, actions, rewards, terminated, never, actors, advice),)

    def learned(self, frames: float) -> None:
        """The games wait anyway."""

    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]:
        return ()  # a resumed run plays them again

    def cpu_s(self) -> float:
        return 0.0  # this process alone

    def figures(self) -> Figures:
        return {}

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


def _portable(pupil: RainbowPupil) -> Any:
    """A player for another process: compiled, or torch on its CPU."""
    made = quick(pupil)
    if made is pupil and pupil.network.support.device.type != "cpu":
        return RainbowPupil(copy.deepcopy(pupil.network).cpu())
    return made


class ArcadeSource:
    """Whoever connects to the bridge, which has a process of its own."""

    place = "on arcade clients, evaluations on the simulator"
    can_wait = False
    title = ""

    def __init__(self, config: TempestConfig, context: Context, listening: BridgeConfig):
        own = config.rainbow
        self.context = context
        self.setup = Setup(replace(listening, hold_s=own.reply_delay), context.run.name, config.seed, config.shaping)
        self.most_updates = 1 << 30 if own.reply_delay else MOST_UPDATES
        self.top_level = config.starts.top_level
        self.reports: Mapping[str, Callable[[], Report | str]] = {"clients": self._report}
        self.player: tuple[RainbowPupil, Exploration] | None = None
        self.installed = 0  # players so far
        self.streams = 0  # number of the first stream: streams of a process that died are never gone on with
        self.frames_learned = 0.0  # of those that came from this process
        self.deaths: list[float] = []
        self.before = Status()
        self.dead_cpu_s = 0.0  # processor time of bridges that died
        self.bridge: BridgeProcess

    def follow(self, pupil: RainbowPupil, explore: Exploration) -> None:
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
        self.frames_learned, self.dead_cpu_s, self.before = 0.0, self.cpu_s(), Status()
        self._start()

    def _fetch(self, least: int = 0, seconds: float = 0.0) -> Played:
        batch = self.bridge.fetch(least, seconds)
        for finished in batch.games:
            self._finish(finished)
        found = [made._replace(streams=made.streams + self.streams) for made in batch.transitions]
        return Played(found, batch.frames, None, batch.episodes, 0.0, batch.acting_s, batch.decisions)

    def _finish(self, finished: Finished) -> None:
        game = finished.game
        ending, levels = "cut" if game.truncated else "over", f"level {game.start_level} to {game.level}"
        self.context.note(f"client {game.client}: game {ending}, {game.score:,} points, {levels}")

    def transitions(self, played: Experience) -> Sequence[Transitions]:
        found: list[Transitions] = played.content
        return found

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
