"""Frames of many arcade clients, made into what the rest of the package works with; no socket and no learner in sight.

Packets in; out come the `Frames` that want a decision, as the simulator would give them, and `Steps`: decisions whose
outcome is known. Only ticks in which the player has control count: what the machine does in between (dying, menus,
attract mode) passes without a decision and without a trace. Every client has a place; what it plays from its arrival to
its departure is a stream, cut where a tick is missing.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.games.tempest.arcade import wire
from protege.games.tempest.rules import ram
from protege.games.tempest.rules.levels import START_BONUSES
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import joint_action, quantised
from protege.games.tempest.task.env import Frames, new_frames
from protege.games.tempest.task.observation import VALUES
from protege.games.tempest.task.rewards import scaled_reward
from protege.kernels import kernel

Places = npt.NDArray[np.int64]  # (clients,), each from 0 to the greatest number of clients - 1
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]


def _states(*those: int) -> Flags:
    table = np.zeros(256, np.bool_)
    table[list(those)] = True
    return table


_CONTROL: Final = _states(ram.PLAYING, ram.ZOOM)
_OVER: Final = _states(ram.HIGH_SCORE_CHECK, ram.ENTER_INITIALS, ram.HIGH_SCORE_TABLE, ram.HIGH_SCORE_BOOM)
_IN_GAME: Final = _states(
    ram.NEW_LIFE, ram.PLAYING, ram.LIFE_LOST, ram.GAME_OVER, ram.DELAY, ram.LEVEL_DONE, ram.ZOOM_IN, ram.NEW_LIFE_PAUSE,
    ram.ZOOM,
)  # fmt: skip


class Steps(NamedTuple):
    """Decisions and what came of them, at most one of each client.

    The successor of a step is the next one of the same stream. A truncated step closes its stream: its observation is
    where the stream was cut, and its action and reward never came to anything.
    """

    clients: Places
    streams: npt.NDArray[np.int64]  # numbers that are never used again
    observations: Floats  # (steps, 195)
    actions: npt.NDArray[np.int64]  # joint actions; -1 for a command that is none of the 44
    advice: npt.NDArray[np.int64]  # the joint action the teacher advised
    rewards: Floats  # scaled, added and clipped
    objectives: Floats  # points, -1000 for a death
    terminated: Flags
    truncated: Flags
    actors: npt.NDArray[np.int64]  # as whoever decided called them
    penalties: Floats  # rewards that whoever decided adds to the machine's


class Decisions(NamedTuple):
    """What clients shall do."""

    actions: Any  # joint actions (clients,), or commands (clients, 3)
    actors: Any  # who chose them: numbers that come back in `Steps`
    penalties: Any = 0.0  # rewards for choosing them, which come back as well
    advice: Any = None  # what the teacher would have done, where that is not the one inside the client: joint actions


@dataclass(frozen=True)
class Game:
    """A game that ended, or was cut."""

    client: int
    score: int  # without the start bonus
    start_bonus: int
    level: int  # reached
    start_level: int
    frames: int
    deaths: int
    truncated: bool  # still running when it had lasted as long as games are counted


# Of a client's last decision: there is none; its outcome is not known; its outcome is known, but not its successor.
_NONE, _AWAITED, _HELD = 0, 1, 2
_ENDED, _TOO_LONG, _BROKEN_OFF = 1, 2, 3  # of a game
_MOST_GAIN: Final = 10_000  # points of one tick: a superzapper on seven fuseballs pays half of that
_MOST_BONUS: Final = int(START_BONUSES[-1]) + _MOST_GAIN  # and of the one that pays the start bonus

# What is known of a client.
CLIENT: Final = np.dtype(
    [
        ("stream", "i8"),
        ("stage", "i8"),  # of the last decision, and what it was
        *((name, "i8") for name in ("counter", "action", "advice", "actor")),
        ("penalty", "f4"),
        ("objective", "f8"),  # and what came of it
        ("subjective", "f8"),
        ("terminated", "i8"),
        ("playing", "i8"),  # the game
        ("counted", "i8"),  # seen from its beginning, and not reported yet
        ("state", "i8"),
        ("mode", "i8"),
        ("shown", "i8"),  # the score on the screen
        *((name, "i8") for name in ("score", "bonus", "level", "start_level", "frames", "deaths")),
    ]
)


@kernel
def _put_step(client: Any, place: int, seen: Floats, ended: bool, cut: bool, steps: Steps, at: int) -> None:
    for i in range(VALUES):
        steps.observations[at, i] = seen[i]
    steps.clients[at], steps.streams[at] = place, client["stream"]
    steps.actions[at], steps.advice[at], steps.actors[at] = client["action"], client["advice"], client["actor"]
    steps.penalties[at] = client["penalty"]
    steps.rewards[at] = 0.0 if cut else scaled_reward(client["objective"], client["subjective"])
    steps.objectives[at] = 0.0 if cut else client["objective"]
    steps.terminated[at], steps.truncated[at] = ended, cut


@kernel
def _put_frame(client: Any, packet: Any, seen: Floats, frames: Frames, at: int) -> None:
    """The coming frame of a client whose player has control."""
    for i in range(VALUES):
        frames.observation[at, i] = seen[i]
    frames.objective[at], frames.subjective[at] = client["objective"], client["subjective"]
    frames.reward[at] = scaled_reward(client["objective"], client["subjective"])
    frames.terminated[at], frames.over[at] = client["terminated"] != 0, False
    frames.score[at], frames.level[at] = client["score"], client["level"]
    frames.lives[at], frames.frame[at] = int(round(seen[layout.LIVES] * layout.LIVES_SCALE)), client["frames"] - 1
    spinner = wire.spinner_to(packet)
    frames.advice[at, 0] = frames.advice_full[at, 0] = packet["advised_fire"]
    frames.advice[at, 1] = frames.advice_full[at, 1] = packet["advised_zap"]
    frames.advice[at, 2], frames.advice_full[at, 2] = quantised(spinner), spinner
    client["advice"] = joint_action(packet["advised_fire"], packet["advised_zap"], quantised(spinner))
    client["terminated"] = 0


@kernel
def _begins_anew(client: Any, packet: Any) -> bool:
    """Whether a machine in play was reset: its score has fallen, and not by going over a million.

    Going over it takes no more points than a tick can pay, and no level is lost.
    """
    gained = np.int64(packet["score"]) - client["shown"]
    if gained >= 0:
        return False
    gained += wire.SCORE_WRAP
    pays_bonus = client["state"] == ram.LEVEL_DONE and client["bonus"] == 0 and packet["score"] > 0
    return np.int64(packet["level"]) + 1 < client["level"] or gained > (_MOST_BONUS if pays_bonus else _MOST_GAIN)


@kernel
def _follow_game(client: Any, packet: Any, control: bool, in_game: bool) -> None:
    """Score that never wraps, start bonus apart, frames and deaths; a game that begins."""
    shown = np.int64(packet["score"])
    if client["playing"] and in_game:
        gained = (shown - client["shown"]) % wire.SCORE_WRAP
        if client["state"] == ram.LEVEL_DONE:
            client["bonus"] += gained
        else:
            client["score"] += gained
        client["deaths"] += np.int64(packet["done"])
    client["shown"] = shown
    if not control:
        return
    client["level"] = np.int64(packet["level"]) + 1
    if not client["playing"]:
        client["playing"] = 1
        client["counted"] = 1 if shown == 0 else 0  # a game joined in the middle is played, but is nobody's result
        client["score"], client["start_level"] = shown, client["level"]
        client["bonus"], client["deaths"], client["frames"], client["terminated"] = 0, 0, 0, 0
        client["objective"], client["subjective"] = 0.0, 0.0
    client["frames"] += 1


@kernel
def _take(
    clients: npt.NDArray[np.void], seen: Floats, places: Places, packets: wire.Packets, values: Floats,
    next_stream: int, longest: int, steps: Steps, frames: Frames, asked: Flags, games: npt.NDArray[np.uint8],
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """One tick of some clients: how many steps, frames, ended games and wishes to save; the next stream's number."""
    told = looked = over = saves = 0
    for i in range(len(places)):
        place, packet = places[i], packets[i]
        client, state, lost = clients[place], packet["state"], packet["done"] != 0
        real = packet["mode"] & ram.REAL_GAME != 0
        in_game = real and _IN_GAME[state]
        control = real and _CONTROL[state] and values[i, layout.PLAYER_ALIVE] > 0.5 and not lost
        follows = np.int64(packet["counter"]) == (client["counter"] + 1) & 0xFFFF
        stage, ended = client["stage"], False
        anew = client["playing"] and in_game and _begins_anew(client, packet)
        if stage == _AWAITED and follows:
            client["objective"], client["subjective"] = packet["objective"], packet["subjective"]
            client["terminated"] = 1 if lost else 0
            stage, ended = _HELD, lost
        cut = stage != _NONE and not ended and not (follows and in_game and not anew)
        if ended or cut or (stage == _HELD and control):
            _put_step(client, place, seen[place], ended, cut, steps, told)
            told += 1
            stage = _NONE
        if cut:
            client["stream"] = next_stream
            next_stream += 1
        games[i] = 0
        if client["playing"] and (anew or not in_game):
            games[i] = _ENDED if not anew and (_OVER[state] or client["state"] == ram.GAME_OVER) else _BROKEN_OFF
        if games[i] == _BROKEN_OFF:
            client["playing"] = client["counted"] = 0
        _follow_game(client, packet, control, in_game)
        if client["counted"] and client["frames"] > longest:
            games[i] = _TOO_LONG
        over += games[i] != 0
        saves += packet["save"]
        client["counter"], client["state"], client["mode"] = packet["counter"], state, packet["mode"]
        asked[i] = control
        if control:
            for j in range(VALUES):  # what lies a rounding error outside is put inside
                seen[place, j] = max(np.float32(-1), min(np.float32(1), values[i, j]))
            _put_frame(client, packet, seen[place], frames, looked)
            looked += 1
            stage = _AWAITED
        client["stage"] = stage
    return told, looked, over, saves, next_stream


def _new_steps(count: int) -> Steps:
    numbers = [np.empty(count, np.int64) for _ in range(5)]
    rewards = [np.empty(count, np.float32) for _ in range(3)]
    flags = [np.empty(count, np.bool_) for _ in range(2)]
    seen = np.empty((count, VALUES), np.float32)
    return Steps._make([*numbers[:2], seen, *numbers[2:4], *rewards[:2], *flags, numbers[4], rewards[2]])


class Streams:
    """What is known of every client."""

    def __init__(self, places: int = wire.MOST_CLIENTS, *, seed: int = 0, longest_game: int = 200_000):
        self.clients = np.zeros(places, CLIENT)
        self.seen = np.zeros((places, VALUES), np.float32)  # where the last decision was made
        self.longest_game = longest_game
        self.finished: list[Game] = []  # since whoever is interested last looked and emptied it
        self.broken_off = 0  # games that ended in a reset: nobody's result
        self.save_asked = False  # by any client, since it was last looked at and set back
        self._frames: dict[int, Frames] = {}  # by number of clients: used again and again, as those of the simulator
        self._asked, self._games = np.zeros(places, np.bool_), np.zeros(places, np.uint8)
        self._random = np.random.default_rng(seed)
        self._next_stream = 0

    def open(self, place: int) -> None:
        self.clients[place] = np.zeros((), CLIENT)
        self._renumber(place)

    def cut(self, place: int) -> Steps:
        """A client has gone, or what it sent last cannot be used: its stream ends here."""
        client, steps = self.clients[place], _new_steps(1)
        if client["stage"] == _NONE:
            return Steps._make([part[:0] for part in steps])
        _put_step(client, place, self.seen[place], False, True, steps, 0)
        client["stage"] = _NONE
        self._renumber(place)
        return steps

    def take(self, places: Places, packets: wire.Packets, values: Floats) -> tuple[Steps, Flags, Frames]:
        """One tick of some clients: steps that are now complete, who wants a decision, and the frames to decide on."""
        count = len(places)
        steps, frames = _new_steps(count), self._frames.get(count) or self._frames.setdefault(count, new_frames(count))
        asked, games = self._asked[:count], self._games[:count]
        told, looked, over, saves, self._next_stream = _take(
            self.clients, self.seen, places, packets, values, self._next_stream, self.longest_game, steps, frames,
            asked, games,
        )  # fmt: skip
        self.save_asked |= saves > 0
        for i in np.flatnonzero(games).tolist() if over else ():
            self._finish(int(places[i]), int(games[i]))
        self._random.random(out=frames.uniform)
        if told < count:
            steps = Steps._make([part[:told] for part in steps])
        if looked < count:
            frames = Frames._make([part[:looked] for part in frames])
        return steps, asked, frames

    def decided(self, places: Places, decided: Decisions) -> None:
        """The joint actions these clients were told, who chose them, what that costs, and who advised what."""
        self.clients["action"][places] = decided.actions
        self.clients["actor"][places] = decided.actors
        self.clients["penalty"][places] = decided.penalties
        if decided.advice is not None:
            self.clients["advice"][places] = decided.advice

    def _renumber(self, place: int) -> None:
        self.clients[place]["stream"] = self._next_stream
        self._next_stream += 1

    def _finish(self, place: int, how: int) -> None:
        client, truncated = self.clients[place], how == _TOO_LONG
        if how == _BROKEN_OFF:
            self.broken_off += 1
            return
        if client["counted"]:
            names = ("score", "bonus", "level", "start_level", "frames", "deaths")
            score, bonus, level, start, frames, deaths = (int(client[name]) for name in names)
            self.finished.append(Game(place, score, bonus, level, start, frames - truncated, deaths, truncated))
        client["counted"], client["playing"] = 0, int(truncated)
