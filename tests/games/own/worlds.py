"""Small environments for the tests, registered with Gymnasium: a walk, and one for each way to break a promise."""

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

LENGTH = 12


class Walk(gymnasium.Env[Any, Any]):
    """Walk from the middle to the right end (+1); the left end is a fall (-1). Each step costs a little."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self, wind: float = 0.1, render_mode: str | None = None) -> None:
        self.render_mode, self.wind = render_mode, wind
        self.observation_space: Any = spaces.Box(-1, 1, (2,), np.float32)
        self.action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(-2, 3))
        return self.look(), {}

    def look(self) -> Any:
        return np.array([self.at / 6, 1.0], np.float32)

    def step(self, action):
        blown = self.np_random.random() < self.wind
        self.at += 1 if (action == 1) != blown else -1
        over = abs(self.at) >= 6
        return self.look(), float(np.sign(self.at)) if over else -0.02, bool(over), False, {}

    def render(self):
        picture = np.zeros((16, 13 * 8, 3), np.uint8)
        picture[:, (self.at + 6) * 8 : (self.at + 7) * 8] = 255
        return picture


class NamedWalk(Walk):
    """The same, seen as a dictionary."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        near = spaces.Dict({"edge": spaces.Discrete(3, start=-1), "goal": spaces.MultiBinary(2)})
        self.observation_space = spaces.Dict({"at": spaces.Box(-1, 1, (2,), np.float32), "near": near})

    def look(self):
        edge = int(np.sign(self.at)) if abs(self.at) == 5 else 0
        return {"at": super().look(), "near": {"edge": edge, "goal": np.array([self.at > 0, 1], np.int8)}}


class DrawnWalk(Walk):
    """The same, seen as a picture."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.observation_space = spaces.Box(0, 255, (8, 16, 1), np.uint8)

    def look(self):
        picture = np.zeros((8, 16, 1), np.uint8)
        picture[:, self.at + 7] = 255
        return picture


class PushedWalk(Walk):
    """The same, moved by a number: the sum of two pushes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action_space = spaces.Box(np.array([-1, -2], np.float32), np.array([1, 2], np.float32))

    def step(self, action):
        assert action.dtype == np.float32 and self.action_space.contains(action), action
        return super().step(int(action.sum() > 0))


class LeverWalk(Walk):
    """The same, moved by two levers, which must both be pulled to go right, the second one at least half."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action_space = spaces.MultiDiscrete([2, 3])

    def step(self, action):
        return super().step(int(action[0] == 1 and action[1] > 0))


class Broken(Walk):
    """Breaks the promise that `fault` names, in its third step or at once."""

    def __init__(self, fault: str = "", **kwargs: Any) -> None:
        super().__init__(wind=0.0)
        self.fault, self.steps = fault, 0
        if fault == "makes":
            raise RuntimeError("no display here")
        if fault == "text":
            self.observation_space = spaces.Text(5)
        if fault == "sequence":
            self.action_space = spaces.Sequence(spaces.Discrete(2))
        if fault == "unbounded":
            self.action_space = spaces.Box(-np.inf, np.inf, (2,))

    def reset(self, *, seed=None, options=None):
        if self.fault == "reset":
            raise OSError("the level file is missing")
        if self.fault == "bare":
            return super().reset(seed=seed)[0]
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        seen, reward, over, cut, info = super().step(action)
        if self.steps < 3:
            return seen, reward, over, cut, info
        match self.fault:
            case "nan":
                seen[1] = np.nan
            case "nan reward":
                reward = float("nan")
            case "no reward":
                return seen, None, over, cut, info
            case "shape":
                seen = np.zeros(3, np.float32)
            case "four":
                return seen, reward, over, info
            case "done":
                return seen, reward, None, cut, info
            case "raises":
                raise ZeroDivisionError("division by zero")
        return seen, reward, over, cut, info


class Seedless(Walk):
    """As environments were before they took a seed."""

    def reset(self, **kwargs):
        return self.begin(**kwargs)

    def begin(self):
        self.at = 0
        return self.look(), {}


class Endless(Walk):
    """Never ends by itself, and its seed has no effect."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=time.time_ns() % 2**31)

    def step(self, action):
        seen, reward, _, _, info = super().step(action)
        self.at = max(-5, min(5, self.at))
        return seen, reward, False, False, info


for kind in (Walk, NamedWalk, DrawnWalk, PushedWalk, LeverWalk, Broken, Seedless, Endless):
    gymnasium.register(f"tests/{kind.__name__}-v0", f"{__name__}:{kind.__name__}", max_episode_steps=60)


def teach(observation):
    """Goes on to the end that is nearer: right for most starts, not for all."""
    return int(observation[0] >= 0)


def teach_named(observation):
    return teach(observation["at"])


def teach_with_env(env, observation):
    assert abs(env.at / 6 - observation[0]) < 1e-6, "the environment that showed this"
    return 1


def teach_env(env):
    return 1 if env.at < 6 else 0


def teach_push(observation):
    return np.array([1.0, 0.5])


def teach_levers(observation):
    return [1, 2]


def teach_all(observations):
    return np.ones(len(observations), np.int64)


teach_all.batched = True  # type: ignore[attr-defined]


class Taught:
    """A class that is made without arguments and called."""

    def __call__(self, observation):
        return 1


def too_far(observation):
    return 2


def too_hard(observation):
    return np.array([3.0, 0.0])


def nothing(observation):
    return None


def not_whole(observation):
    return 0.5


def fails(observation):
    raise KeyError("speed")


def three(one, two, three):
    return 0


class Needy:
    """Cannot be made without arguments."""

    def __init__(self, level):
        self.level = level


NUMBER = 5


class Rowers:
    """Two agents walk as one: the boat moves only if both pull the same way. As PettingZoo's parallel environments."""

    metadata = {"name": "rowers", "render_modes": ["rgb_array"]}
    possible_agents = ["bow", "stern"]

    def __init__(self, fault: str = "", render_mode: str | None = None) -> None:
        self.fault, self.agents = fault, list(self.possible_agents)

    def observation_space(self, agent):
        return spaces.Box(-1, 1, (3 if self.fault == "spaces" and agent == "stern" else 2,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.random, self.agents, self.frame = np.random.default_rng(seed), list(self.possible_agents), 0
        self.at = int(self.random.integers(-2, 3))
        return self.look(), {agent: {} for agent in self.agents}

    def look(self):
        return {agent: np.array([self.at / 6, i], np.float32) for i, agent in enumerate(self.possible_agents)}

    def step(self, actions):
        self.frame += 1
        pulls = [actions[agent] for agent in self.possible_agents]
        self.at += (1 if pulls[0] else -1) if pulls[0] == pulls[1] else 0
        over, cut = abs(self.at) >= 6, self.frame >= 40
        reward = float(np.sign(self.at)) if over else -0.02
        ended = {agent: over and not (self.fault == "leaves" and agent == "stern") for agent in self.possible_agents}
        seen = {} if self.fault == "blind" else self.look()
        return seen, dict.fromkeys(ended, reward), ended, dict.fromkeys(ended, cut and not over), {}

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)

    def close(self):
        pass


def parallel_env(**kwargs):
    return Rowers(**kwargs)
