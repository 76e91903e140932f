"""The task for PettingZoo: one battle, both sides, one agent per mech (`EchelonEnv`).

A skin over `env.Arena` with dictionaries by agent; whatever it hands out is a copy.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv

from protege.games.echelon.rules.battle import MESSAGE
from protege.games.echelon.rules.sim import BUTTONS, BadActions, BattleOver
from protege.games.echelon.task.env import Arena, Choices
from protege.games.echelon.task.features import CELLS, CHANNELS, ENEMY, FASTEST, FRIEND, ORDER_KINDS, OWN, Fields, width
from protege.games.echelon.world.mechs import NOBODY, find_roster

View = dict[str, npt.NDArray[Any]]
Views = dict[str, View]  # by agent
Infos = dict[str, dict[str, Any]]
SHOWN: Final = ("own", "friends", "friend_mask", "enemies", "enemy_mask", "map", "messages", "legal")
TEAMS: Final = ("blue", "red")
ENDINGS: Final = ("running", "elimination", "score", "time")


def box(fields: Fields, *slots: int, cells: tuple[int, ...] = (), dtype: Any = np.float32) -> spaces.Box:
    """A space of values of these fields: of each slot, or in each cell."""
    sizes, shape = [field.size for field in fields], (*slots, width(fields), *cells)
    ends = (np.repeat([getattr(field, end) for field in fields], sizes) for end in ("low", "high"))
    low, high = (np.broadcast_to(end.reshape(-1, *(1 for _ in cells)), shape).astype(dtype) for end in ends)
    return spaces.Box(low, high, dtype=dtype)


class EchelonEnv(ParallelEnv):  # type: ignore[misc]
    """One battle. Agents are called blue_0, blue_1 ... red_0, red_1 ..., in roster order."""

    metadata: dict[str, Any] = {"name": "echelon_v1", "render_modes": [], "is_parallelizable": True}
    render_mode: str | None = None

    def __init__(self, roster: str = "10v10", *, talk: bool = False, **options: Any):
        """`talk` adds messages and orders to the actions; `options` are those of `Arena`."""
        self.arena = Arena(1, roster, auto_reset=False, **options)
        members = find_roster(roster).members()
        self.possible_agents = [f"{TEAMS[team]}_{rank}" for team, rank in zip(members.team, members.rank)]
        self.agents: list[str] = []
        self._index = {name: i for i, name in enumerate(self.possible_agents)}
        self._views = {name: self._view_space() for name in self.possible_agents}
        self._controls = {name: self._control_space(talk) for name in self.possible_agents}
        self.state_space = spaces.Box(-FASTEST, FASTEST, self.state().shape, np.float32)

    def _view_space(self) -> spaces.Dict:
        layout = self.arena.layout
        return spaces.Dict(
            own=box(OWN), friends=box(FRIEND, layout.friends), friend_mask=spaces.MultiBinary(layout.friends),
            enemies=box(ENEMY, layout.enemies), enemy_mask=spaces.MultiBinary(layout.enemies),
            map=box(CHANNELS, cells=(CELLS, CELLS), dtype=np.int8), messages=spaces.Box(-1, 1, (layout.pack, MESSAGE)),
            legal=spaces.MultiBinary(layout.legal),
        )  # fmt: skip

    def _control_space(self, talk: bool) -> spaces.Dict:
        layout = self.arena.layout
        controls: dict[str, spaces.Space[Any]] = {
            "move": spaces.Box(-1, 1, (4,)), "buttons": spaces.MultiBinary(BUTTONS),
            "ewar": spaces.Discrete(3), "target": spaces.Discrete(layout.enemies + 1),
        }  # fmt: skip
        if talk:
            controls["message"] = spaces.Box(-1, 1, (MESSAGE,))
            controls["order"] = spaces.MultiDiscrete([ORDER_KINDS, layout.friends, layout.enemies])
        return spaces.Dict(controls)

    def observation_space(self, agent: str) -> spaces.Dict:
        return self._views[agent]

    def action_space(self, agent: str) -> spaces.Dict:
        """What an agent decides; `legal` in its observation says what can have an effect."""
        return self._controls[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Views, Infos]:
        """Begin a seed's first battle; without a seed, the next one."""
        if seed is None:
            self.arena.begin([0])
        else:
            self.arena.reset(seed)
        self.agents = list(self.possible_agents)
        return {name: self._view(name) for name in self.agents}, {name: {} for name in self.agents}

    def step(self, actions: Infos) -> tuple[Views, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        if not self.agents:
            raise BattleOver("no battle is going on: call reset before step")
        frames = self.arena.step(self.arena.decode(self._choices(actions)))
        acting, told = self.agents, {}
        if frames.over[0]:
            winner = int(frames.winner[0])
            told = {"ending": ENDINGS[frames.ending[0]], "winner": None if winner == NOBODY else TEAMS[winner]}
        index = {name: self._index[name] for name in acting}
        rewards = {name: float(frames.reward[0, i]) for name, i in index.items()}
        terminated = {name: bool(frames.terminated[0, i]) for name, i in index.items()}
        truncated = {name: bool(frames.truncated[0, i]) for name, i in index.items()}
        self.agents = [name for name in acting if not terminated[name] and not truncated[name]]
        observations = {name: self._view(name) for name in acting}
        return observations, rewards, terminated, truncated, {name: dict(told) for name in acting}

    def state(self) -> npt.NDArray[np.float32]:
        """The whole battle, from blue's side."""
        observation = self.arena.observation
        return np.concatenate([observation.state[0, 0], observation.mechs[0, 0].ravel()])

    def _view(self, name: str) -> View:
        observation, i = self.arena.observation, self._index[name]
        view = {group: getattr(observation, group)[0, i].copy() for group in SHOWN}
        return {group: array.astype(np.int8) if array.dtype == np.bool_ else array for group, array in view.items()}

    def _choices(self, actions: Infos) -> Choices:
        if set(actions) != set(self.agents):
            wrong = f"{min(set(actions) ^ set(self.agents))} is missing or not one"
            raise BadActions(f"one action for each of {len(self.agents)} agents is needed; {wrong}")
        idle = self.arena.battles.no_actions()
        idle.target[:] = self.arena.layout.enemies
        for name, action in actions.items():
            expected = self._controls[name].spaces
            if set(action) != set(expected):
                raise BadActions(f"an action consists of {', '.join(expected)}; that of {name} of {', '.join(action)}")
            for part, value in action.items():
                place, found = getattr(idle, part)[0, self._index[name]], np.asarray(value)
                kinds = "biuf" if place.dtype.kind == "f" else "biu"
                if found.shape != place.shape or found.dtype.kind not in kinds:
                    wanted = f"{place.dtype} of shape {place.shape}"
                    raise BadActions(f"{part} of {name} must be {wanted}; got {found.dtype} of {found.shape}")
                getattr(idle, part)[0, self._index[name]] = found
        return Choices(*idle)
