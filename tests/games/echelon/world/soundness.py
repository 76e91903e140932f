"""What every generated map promises: both teams get to the zone, fairly, and nobody is trapped."""

import numpy as np

from protege.games.echelon.world.mechs import NARROW, WIDE
from protege.games.echelon.world.paths import WALL
from protege.games.echelon.world.routes import centre_of, find_trap, second_route, workshop


def assert_sound(world):
    """Every promise about getting around: for the heavy's footprint, and that nobody is ever trapped."""
    battles, _, y, x = world.material.shape
    shop = workshop(x, y)
    for b in range(battles):
        for team in (0, 1):
            column, row = centre_of(world, b, team)
            assert world.distance[b, WIDE, row, column] < WALL, f"map {b}: no way for a heavy of team {team}"
            assert second_route(world, b, column, row, shop) <= 650, f"map {b}: team {team} has one way only"
        starts = np.array([centre_of(world, b, team) for team in (0, 1)])
        for gait in (NARROW, WIDE):
            assert find_trap(world, b, gait, starts, shop) < 0, f"map {b}: a walker can be trapped"
    for gait in (NARROW, WIDE):
        blue, red = walks(world, gait)
        assert (abs(blue - red) <= 0.1 * np.minimum(blue, red)).all(), "unfair"


def walks(world, gait=WIDE):
    """How far it is to the zone from the middle of each team's square, by map."""
    found: list[list[float]] = [[], []]
    for b in range(len(world.material)):
        for team in (0, 1):
            x, y = centre_of(world, b, team)
            found[team].append(world.distance[b, gait, y, x] / 10)
    return np.array(found)
