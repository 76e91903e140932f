"""A proof about the Lua client: it sends what the Python path computes, on hundreds of thousands of memory images."""

from collections.abc import Iterator

import pytest

from proofs.row import Stopwatch, write_row
from protege.games.tempest.rules import ram
from tests.games.tempest.arcade.lua_client import SEED, SEEDED, VERSIONS, Client, expected_frame
from tests.games.tempest.task.scenes import played_images, random_images, row_of

LEVELS = range(1, 100)
TICKS_PER_LEVEL = 4000
RANDOM_PAIRS = 50_000

pytestmark = pytest.mark.prove


def random_rows() -> Iterator[tuple[bytes, ram.Row]]:
    before = None
    number = 0
    for pair in random_images(seed=63, count=RANDOM_PAIRS):
        for memory in map(bytearray, reversed(pair)):
            number += 1
            memory[ram.TICK] = number & 0xFF
            yield bytes(memory), row_of(memory, before)
            before = memory


def compared(rows: Iterator[tuple[bytes, ram.Row]]) -> int:
    """Feed one sequence of ticks to a client of each version; how many there were."""
    clients = [Client(version, SEEDED) for version in VERSIONS]
    number = 0
    for number, (now, row) in enumerate(rows, start=1):
        wanted = expected_frame(row, number, SEED)
        for client in clients:
            client.video_frame(now)
            if number > 1:  # the client has seen nothing before its first tick, the row may have
                assert client.frames[-1] == wanted, f"frame {number}"
            client.frames.clear()
    return number


def test_lua_client():
    clock = Stopwatch()
    games = [((now, row) for now, _, row in played_images(level, TICKS_PER_LEVEL)) for level in LEVELS]
    figures = {"images_played": sum(map(compared, games)), "images_random": compared(random_rows())}
    assert sum(figures.values()) > 400_000
    row = {
        "command": "make prove lua_client",
        "seeds": f"levels {LEVELS.start} to {LEVELS.stop - 1} of the simulator, noise from seed 63",
        **clock.spent(),
        "figures": figures | {"lua_versions": len(VERSIONS), "differences": 0},
    }
    print(write_row("lua-client", row).read_text())
