"""How fast Echelon battles run: rules alone, with everything a learner needs, and what a map costs."""

import time
from itertools import count

import numpy as np

from protege.games.echelon.task.env import Arena
from protege.games.echelon.task.teacher import Teacher
from protege.games.echelon.world.maps import generate
from protege.slices import Figures, Side, alternate, timed

BATTLES = 128
WARM_UP = 300  # decisions: battles have ended and begun anew since, so that they are of every age
DECISIONS = 8  # in a slice


class _Played:
    """Battles of every age, `medium` on both sides."""

    def __init__(self, threads: int) -> None:
        self.arena, self.player = Arena(BATTLES, "10v10", threads=threads), Teacher("medium")
        self.battles = self.arena.battles
        self.everybody, self.actions = np.ones((BATTLES, self.battles.mech_count), np.bool_), self.battles.no_actions()
        self.agent_steps = DECISIONS * self.everybody.size  # of a slice
        self.living: list[float] = []
        self.play(WARM_UP)
        self.living.clear()

    def decide(self) -> None:
        self.player.act(self.battles, self.everybody, self.actions)

    def play(self, decisions: int = DECISIONS) -> None:
        for _ in range(decisions):
            self.decide()
            self.arena.step(self.actions)
            self.living.append(float(self.battles.mechs["alive"].mean()))

    def rules_alone(self) -> tuple[int, float]:
        took = 0.0
        for _ in range(DECISIONS):
            self.decide()
            began = time.perf_counter()
            self.battles.step(self.actions)
            took += time.perf_counter() - began
            self.arena.begin(np.flatnonzero(self.battles.over).tolist())
        return self.agent_steps, took


def echelon_sim(seconds: float) -> Figures:
    """Agent-steps (a mech, a decision) per second: 10v10 on maps of 100 x 100 x 20, `medium` on both sides.

    With observations, rewards, scripted players and new maps for battles that end; and the rules alone, of the same
    battles. The dead of battles that go on are counted, as they are in the learner's arrays; `living_fraction` tells
    how many were alive, and `living_agent_steps_per_s` counts those alone.
    """
    seeds = count(10_000_000)
    maps = timed(lambda: generate([next(seeds)]))
    maps()  # compiled, from here on
    one, two = _Played(1), _Played(2)
    sides: dict[str, Side] = {
        "agent_steps_per_s": timed(one.play, one.agent_steps),
        "agent_steps_per_s_2_threads": timed(two.play, two.agent_steps),
        "agent_steps_per_s_sim_only": _Played(1).rules_alone,
        "maps_per_s": maps,
    }
    figures = alternate(sides, seconds)
    alive = float(np.mean(one.living + two.living))
    for kind in ("", "_quiet"):
        figures[f"map_ms{kind}"] = 1000 / figures.pop(f"maps_per_s{kind}")
        rate = figures[f"agent_steps_per_s{kind}"]
        figures[f"two_threads_ratio{kind}"] = figures[f"agent_steps_per_s_2_threads{kind}"] / rate
        figures[f"living_agent_steps_per_s{kind}"] = alive * rate
    return figures | {"living_fraction": alive, "battles": BATTLES}
