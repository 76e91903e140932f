"""A game of one's own in one file: catch apples in a basket, golden ones above all, and keep away from bombs.

    protege train examples/own_game.py --minutes 3

trains a pupil that outplays the teacher below. Thousands of games are played at once: every array has a row for each.
docs/your-own-game.md explains it step by step.
"""

import numpy as np
from gymnasium import spaces

from protege.games.own.game import array_game
from protege.games.own.world.arena import uniform

WIDTH = 9  # columns
HEIGHT = 8  # rows that a thing falls through, one in each frame
THINGS = 4  # in the air at once
FRAMES = 200  # of an episode
APPLE, GOLD, BOMB = 0, 1, 2
WORTH = np.array([1.0, 10.0, -5.0])
LEFT, STAY, RIGHT = 0, 1, 2


class Orchard:
    """So many games side by side."""

    # The basket's column, the frame, and of each thing how far aside and how high it is, and what it is.
    observation_space = spaces.Box(-1.0, 1.0, (2 + 5 * THINGS,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, games):
        self.seeds = np.zeros(games, np.int64)
        self.frame = np.zeros(games, np.int64)
        self.basket = np.zeros(games, np.int64)
        self.column, self.height, self.kind = np.zeros((3, games, THINGS), np.int64)

    def reset(self, which, seeds):
        """Begin these games anew, each from its seed: the same seed must give the same game."""
        self.seeds[which], self.frame[which], self.basket[which] = seeds, 0, WIDTH // 2
        for thing in range(THINGS):
            self.drop(which, thing)
            self.height[which, thing] = HEIGHT + thing * HEIGHT // THINGS

    def drop(self, which, thing):
        """Let another thing fall in these games. Chance follows from a game's seed and frame, and from nothing else."""
        luck = uniform(self.seeds[which], THINGS * self.frame[which] + thing, 2)
        self.column[which, thing] = luck[:, 0] * WIDTH
        self.kind[which, thing] = np.searchsorted([0.6, 0.75], luck[:, 1])
        self.height[which, thing] = HEIGHT

    def observe(self):
        """What is seen in each game."""
        seen = np.zeros((len(self.frame), 2 + 5 * THINGS), np.float32)
        seen[:, 0] = 2 * self.basket / (WIDTH - 1) - 1
        seen[:, 1] = 2 * self.frame / FRAMES - 1
        for thing in range(THINGS):
            place = 2 + 5 * thing
            seen[:, place] = (self.column[:, thing] - self.basket) / WIDTH
            seen[:, place + 1] = self.height[:, thing] / (2 * HEIGHT)
            seen[np.arange(len(seen)), place + 2 + self.kind[:, thing]] = 1
        return seen

    def step(self, actions):
        """One frame of all games: rewards, and which of them are over by the rules or because time is up."""
        self.basket = np.clip(self.basket + actions - STAY, 0, WIDTH - 1)
        self.height -= 1
        self.frame += 1
        landed = self.height <= 0
        caught = landed & (self.column == self.basket[:, None])
        rewards = (WORTH[self.kind] * caught).sum(1)
        for thing in range(THINGS):
            self.drop(np.flatnonzero(landed[:, thing]), thing)
        bombed = (caught & (self.kind == BOMB)).sum(1) >= 2  # two at once: the basket is gone
        return rewards, bombed, self.frame >= FRAMES

    def teacher(self):
        """A scripted player: run to the thing that lands next, unless it is a bomb. It never looks further ahead."""
        wanted = np.where(self.kind == BOMB, 2 * HEIGHT + 1, self.height)
        target = self.column[np.arange(len(self.frame)), wanted.argmin(1)]
        return STAY + np.sign(target - self.basket)

    def render(self, game):
        """A picture of one of them, for those who watch."""
        cell, sky = 24, np.array([24, 26, 38], np.uint8)
        picture = np.tile(sky, ((HEIGHT + 1) * cell, WIDTH * cell, 1))
        colours = np.array([[120, 200, 80], [250, 200, 60], [220, 70, 60]], np.uint8)
        for column, height, kind in zip(self.column[game], self.height[game], self.kind[game]):
            if height <= HEIGHT:
                top = (HEIGHT - height) * cell
                picture[top + 4 : top + cell - 4, column * cell + 4 : (column + 1) * cell - 4] = colours[kind]
        picture[-8:, self.basket[game] * cell : (self.basket[game] + 1) * cell] = 230
        return picture


GAME = array_game(Orchard, name="orchard", title="Orchard", about="catch apples and gold, keep away from bombs")
