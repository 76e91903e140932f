"""Glicko-2: how strong a player is, how sure that is, how steady (Glickman 2013, "Example of the Glicko-2 system")."""

from collections.abc import Mapping, Sequence
from math import exp, log, pi, sqrt
from typing import Final, NamedTuple

SCALE: Final = 173.7178  # rating points per unit of the internal scale
START: Final = 1500.0
WIDEST: Final = 350.0  # the deviation of somebody nobody has seen play, and never more than that
VOLATILITY: Final = 0.06
TAU: Final = 0.5  # how readily volatility changes
TOLERANCE: Final = 1e-6
# Beyond the paper: where a game is all but decided before it begins (1,000 points apart), many upsets in one period
# would throw ratings about without limit. Within those bounds nothing changes.
SUREST: Final = 0.997
LEAST_STEADY: Final = 0.2


class Rating(NamedTuple):
    """A player's strength as results tell it: 95 % of the time within two deviations."""

    rating: float = START
    deviation: float = WIDEST
    volatility: float = VOLATILITY

    @property
    def conservative(self) -> float:
        """What the player is almost surely worth; rankings go by it, so that nobody ranks high by few games."""
        return self.rating - 2 * self.deviation


Games = Sequence[tuple[Rating, float]]  # of one player in one period: each opponent, and 1, 0.5 or 0


def update(player: Rating, games: Games) -> Rating:
    """The rating after a period, from the ratings before it; without games only the deviation grows."""
    mu, phi = (player.rating - START) / SCALE, player.deviation / SCALE
    if not games:
        return player._replace(deviation=min(WIDEST, SCALE * sqrt(phi * phi + player.volatility**2)))
    information, surplus = 0.0, 0.0  # 1 / v of equation 3, and the sum of equation 4
    for opponent, score in games:
        other, spread = (opponent.rating - START) / SCALE, opponent.deviation / SCALE
        # g of the paper: how much a result says, given how unsure the opponent's rating is.
        weight = 1 / sqrt(1 + 3 * spread * spread / (pi * pi))
        expected = min(SUREST, max(1 - SUREST, 1 / (1 + exp(-weight * (mu - other)))))
        information += weight * weight * expected * (1 - expected)
        surplus += weight * (score - expected)
    volatility = _volatility(phi, 1 / information, surplus / information, player.volatility)
    before = phi * phi + volatility * volatility
    after = 1 / (1 / before + information)
    return Rating(START + SCALE * (mu + after * surplus), min(WIDEST, SCALE * sqrt(after)), volatility)


class Played(NamedTuple):
    """A game of a period: the score is the first one's. Where only the first is rated, the second lent itself."""

    first: int
    second: int
    score: float
    rates_both: bool = True


def period(ratings: Mapping[int, Rating], games: Sequence[Played], pinned: int) -> dict[int, Rating]:
    """Everybody's rating after a period; `pinned` stays where it is.

    All new ratings come from those given, so the order of games and players has no influence. Who did not play gets
    less certain, unless no game of the period was rated for both: then there was nothing to miss.
    """
    played: dict[int, list[tuple[Rating, float]]] = {player: [] for player in ratings}
    for first, second, score, rates_both in games:
        played[first].append((ratings[second], score))
        if rates_both:
            played[second].append((ratings[first], 1 - score))
    rested = any(game.rates_both for game in games)
    stays = {pinned} | {player for player, own in played.items() if not own and not rested}
    return {player: rating if player in stays else update(rating, played[player]) for player, rating in ratings.items()}


def _volatility(phi: float, v: float, delta: float, sigma: float) -> float:
    """Step 5 of the paper: the root of f by the Illinois method."""
    a = log(sigma * sigma)

    def f(x: float) -> float:
        grown = phi * phi + v + exp(x)
        return exp(x) * (delta * delta - grown) / (2 * grown * grown) - (x - a) / (TAU * TAU)

    low = a
    if delta * delta > phi * phi + v:
        high = log(delta * delta - phi * phi - v)
    else:
        steps = 1
        while f(a - steps * TAU) < 0:
            steps += 1
        high = a - steps * TAU
    f_low, f_high = f(low), f(high)
    while abs(high - low) > TOLERANCE:
        middle = low + (low - high) * f_low / (f_high - f_low)
        f_middle = f(middle)
        if f_middle * f_high <= 0:
            low, f_low = high, f_high
        else:
            f_low /= 2
        high, f_high = middle, f_middle
    return min(LEAST_STEADY, exp(low / 2))
