"""Recorded games: a refactoring leaves them as they are. A change of rules records them anew, in one line:

    python -m tests.games.tempest.rules.test_golden

Each file in golden/ holds two hash chains over a game the teacher plays, one over the machine's memory and one over all
an agent is shown of it, with the links after every hundredth frame.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.sim import Cabinet, start_game
from protege.games.tempest.task.env import Games

GOLDEN = Path(__file__).parents[3] / "golden"
FRAMES, LINK_EVERY = 2500, 100
GAMES = {
    "level-1-easy": {"level": 1, "difficulty": "easy", "seed": 1, "rules": "meet"},
    "level-5": {"level": 5, "difficulty": "medium", "seed": 2, "rules": "meet"},
    "level-11-open": {"level": 11, "difficulty": "medium", "seed": 3, "rules": "era"},
    "level-17-pulsars": {"level": 17, "difficulty": "medium", "seed": 4, "rules": "newer"},
    "level-33-fuseballs": {"level": 33, "difficulty": "medium", "seed": 5, "rules": "meet"},
    "level-49-hard": {"level": 49, "difficulty": "hard", "seed": 6, "rules": "era"},
    "level-81-high": {"level": 81, "difficulty": "medium", "seed": 7, "rules": "newer"},
    "level-99-random": {"level": 99, "difficulty": "hard", "seed": 8, "rules": "meet"},
}
SHOWN = "observation objective subjective reward terminated score level lives advice advice_full".split()


def play(level: int, difficulty: str, seed: int, rules: str) -> dict[str, Any]:
    """The game's chains, and in plain numbers what it came to."""
    row = start_game(level, Cabinet(lives=5, difficulty=difficulty), seed)
    games = Games(row[None], rules=rules)
    memory = shown = b""
    links: dict[str, list[str]] = {"memory": [], "shown": []}
    for frame in range(1, FRAMES + 1):
        frames = games.step(games.frames.advice_full)
        memory = chained(memory, games.rows[0, : ram.RAM_BYTES])
        shown = chained(shown, *(getattr(frames, name)[0] for name in SHOWN))
        if frame % LINK_EVERY == 0 or frames.over[0]:
            links["memory"].append(memory.hex())
            links["shown"].append(shown.hex())
        if frames.over[0]:
            break
    final = {name: int(getattr(frames, name)[0]) for name in ("frame", "score", "level", "lives")}
    return {"game": {"level": level, "difficulty": difficulty, "seed": seed, "rules": rules}, "final": final, **links}


def chained(before: bytes, *arrays: Any) -> bytes:
    """The next link: a hash of the last one and of these arrays, byte order fixed."""
    digest = hashlib.blake2b(before, digest_size=6)
    for array in arrays:
        given = np.asarray(array)
        digest.update(given.astype(given.dtype.newbyteorder("<")).tobytes())
    return digest.digest()


@pytest.mark.parametrize("name", GAMES)
def test_the_teacher_plays_the_recorded_game(name):
    recorded = json.loads((GOLDEN / f"{name}.json").read_text())
    played = play(**GAMES[name])  # type: ignore[arg-type]
    for chain in ("memory", "shown"):
        pairs = zip(recorded[chain], played[chain])
        first = next((i for i, (old, new) in enumerate(pairs) if old != new), None)
        assert first is None, f"{chain} differs before frame {(first + 1) * LINK_EVERY}"
    assert played == recorded


def test_every_recording_has_its_game():
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(GAMES)


def record() -> None:
    """Write the recordings anew."""
    GOLDEN.mkdir(exist_ok=True)
    for name, game in GAMES.items():
        (GOLDEN / f"{name}.json").write_text(json.dumps(play(**game), indent=1) + "\n")  # type: ignore[arg-type]


if __name__ == "__main__":
    record()
