"""How fast Echelon battles run: rules alone, with everything a learner needs, and what a map costs."""

import time
from itertools import count

import numpy as np

from protege.slices import Figures, Side, alternate

BATTLES = 128
WARM_UP = 300  # decisions: battles have ended and begun anew since, so that they are of every age
DECISIONS = 8  # in a slice


def echelon_sim(seconds: float) -> Figures:
    """Agent-steps (a mech, a decision) per second: 10v10 on maps of 100 x 100 x 20, `medium` on both sides.

    With observations, rewards, scripted players and new maps for battles that end; and the rules alone, of the same
    battles. The dead of battles that go on are counted, as they are in the learner's arrays; `living_share` tells how
    many were alive, and `living_agent_steps_per_s` counts those alone.
    """
    from protege.games.echelon.task.env import Arena
    from protege.games.echelon.task.teacher import Teacher
    from protege.games.echelon.world.maps import generate

    living: list[float] = []

    def arena_of(threads: int) -> tuple[Arena, Teacher]:
        arena, player = Arena(BATTLES, "10v10", threads=threads), Teacher("medium")
        actions = arena.battles.no_actions()
        for _ in range(WARM_UP):
            player.act(arena.battles, np.ones_like(arena.battles.terminated), actions)
            arena.step(actions)
        return arena, player

    def everything(threads: int) -> Side:
        arena, player = arena_of(threads)
        battles, everybody = arena.battles, np.ones_like(arena.battles.terminated)
        actions = battles.no_actions()

        def side() -> tuple[int, float]:
            began = time.perf_counter()
            for _ in range(DECISIONS):
                player.act(battles, everybody, actions)
                arena.step(actions)
                living.append(float(battles.mechs["alive"].mean()))
            return DECISIONS * everybody.size, time.perf_counter() - began

        return side

    def rules_alone() -> Side:
        arena, player = arena_of(1)
        battles, everybody = arena.battles, np.ones_like(arena.battles.terminated)
        actions = battles.no_actions()

        def side() -> tuple[int, float]:
            took = 0.0
            for _ in range(DECISIONS):
                player.act(battles, everybody, actions)
                began = time.perf_counter()
                battles.step(actions)
                took += time.perf_counter() - began
                arena.begin(np.flatnonzero(battles.over).tolist())
            return DECISIONS * everybody.size, took

        return side

    seeds = count(10_000_000)

    def maps() -> tuple[int, float]:
        began = time.perf_counter()
        generate([next(seeds)])
        return 1, time.perf_counter() - began

    maps()  # compiled, from here on
    sides: dict[str, Side] = {
        "agent_steps_per_s": everything(1),
        "agent_steps_per_s_2_threads": everything(2),
        "agent_steps_per_s_sim_only": rules_alone(),
        "maps_per_s": maps,
    }
    figures: Figures = dict(alternate(sides, seconds))
    for kind in ("", "_quiet"):
        figures[f"map_ms{kind}"] = 1000 / figures.pop(f"maps_per_s{kind}")
        one, two = figures[f"agent_steps_per_s{kind}"], figures[f"agent_steps_per_s_2_threads{kind}"]
        figures[f"two_threads_ratio{kind}"] = two / one
    share = float(np.mean(living))
    counted = {
        f"living_agent_steps_per_s{kind}": share * figures[f"agent_steps_per_s{kind}"] for kind in ("", "_quiet")
    }
    return figures | counted | {"living_share": share, "battles": BATTLES}
