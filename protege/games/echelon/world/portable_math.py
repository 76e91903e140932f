"""Numbers that are the same on every machine: random streams, sine and cosine, angles.

A library's sine may differ in its last bit between machines, and a battle that branches on it would too. Here
everything comes from whole numbers and from + - * / and square root, whose results IEEE 754 fixes.
"""

from math import ceil, floor, pi, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from protege.kernels import kernel
from protege.seeds import STREAM_STEP, random_bits

Stream = npt.NDArray[np.uint64]  # (1,): the state, advanced in place

# One number per use of a battle's seed: each gives a stream of its own.
TERRAIN, VARIANT, SPAWN, SIMULATION, PLAYERS, LAYOUT = range(6)


@kernel
def start_stream(rng: Stream, seed: np.uint64, domain: int) -> None:
    """Set a stream to where this use of a battle's seed begins."""
    rng[0] = random_bits(random_bits(seed) + STREAM_STEP * np.uint64(domain + 1))


@kernel
def next_bits(rng: Stream) -> np.uint64:
    """The stream's next 64 bits."""
    rng[0] += STREAM_STEP
    return random_bits(rng[0])


@kernel
def below(rng: Stream, limit: int) -> int:
    """A whole number 0..limit-1; limit up to 2**32."""
    return np.int64((next_bits(rng) >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32))  # type: ignore[return-value]


@kernel
def between(rng: Stream, low: int, high: int) -> int:
    """A whole number low..high, both included."""
    return low + below(rng, high - low + 1)


@kernel
def uniform(rng: Stream) -> float:
    """A number in [0, 1), a multiple of 2**-53."""
    return np.float64(next_bits(rng) >> np.uint64(11)) * 2.0**-53


# Half of pi in two parts: the first has so few digits that small multiples of it are exact.
HALF_PI_HIGH: Final = 1.5707963267341256
HALF_PI_LOW: Final = 6.077100506506192e-11


@kernel
def sin_cos(angle: float) -> tuple[float, float]:
    """Sine and cosine, off by less than 1e-15 for angles up to some thousand turns."""
    quarters = floor(angle * (2.0 / pi) + 0.5)
    x = angle - quarters * HALF_PI_HIGH - quarters * HALF_PI_LOW
    q = x * x
    s = c = 1.0
    for n in range(16, 2, -2):  # Taylor series from the last term on
        s = 1.0 - q * (1.0 / (n * (n + 1))) * s
        c = 1.0 - q * (1.0 / (n * (n - 1))) * c
    s, c = x - x * (q * (1.0 / 6.0) * s), 1.0 - q * (1.0 / 2.0) * c
    quarter = int(quarters) & 3
    if quarter & 1:
        s, c = c, -s
    return (-s, -c) if quarter & 2 else (s, c)


@kernel
def angle_of(y: float, x: float) -> float:
    """The direction of (x, y) in (-pi, pi], counter-clockwise from +x; 0 for the zero vector."""
    long, short = max(abs(x), abs(y)), min(abs(x), abs(y))
    if long == 0.0:
        return 0.0
    t = short / long
    t = t / (1.0 + sqrt(1.0 + t * t))  # half the angle
    t = t / (1.0 + sqrt(1.0 + t * t))  # a quarter: at most 0.2
    q = t * t
    series = 0.0
    for n in range(23, 0, -2):
        series = 1.0 / n - q * series
    angle = 4.0 * t * series
    if abs(y) > abs(x):
        angle = pi / 2.0 - angle
    if x < 0.0:
        angle = pi - angle
    return -angle if y < 0.0 else angle


@kernel
def wrap_angle(angle: float) -> float:
    """The same direction in (-pi, pi]."""
    return angle - 2.0 * pi * ceil((angle - pi) / (2.0 * pi))
