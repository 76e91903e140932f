"""Traces made by the simulator, and files of them: what lua/trace.lua writes, written in Python."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from protege.games.tempest.arcade import trace
from protege.games.tempest.arcade.trace import Tick
from protege.games.tempest.rules import ram, sim
from protege.seeds import STREAM_STEP, random_bits


def simulated(ticks: int, level: int = 1, seed: int = 1) -> list[Tick]:
    """So many ticks of a game played at random, from the first one in play."""
    row, dice, made = sim.start_game(level, seed=seed), np.random.default_rng(seed), []
    row[ram.CREDITS] = 9
    for _ in range(ticks):
        fire, zap, start = (dice.random(3) < (0.7, 0.02, 0.05)).tolist()
        sim.press(row, fire, zap, start, int(dice.integers(-20, 21)))
        before, stream = row[: ram.RAM_BYTES].tobytes(), ram.get_word(row, ram.GAME_STREAM)
        sim.tick(row)
        reads = []
        with np.errstate(over="ignore"):
            while stream != ram.get_word(row, ram.GAME_STREAM):
                stream += STREAM_STEP
                reads.append(int(random_bits(stream)) >> 56)
        made.append(Tick(before, tuple(reads), row[: ram.RAM_BYTES].tobytes()))
    return made


def write_trace(path: Path, ticks: Sequence[Tick], name: str = "simulator") -> Path:
    made, memory = (
        bytearray(trace.HEADER.pack(trace.MAGIC, trace.VERSION, len(name)) + name.encode()),
        bytes(ram.RAM_BYTES),
    )
    for tick in ticks:
        reads = trace.COUNT.pack(len(tick.reads)) + b"".join(trace.READ.pack(1, byte) for byte in tick.reads)
        body = _changes(memory, tick.before) + reads + _changes(tick.before, tick.after)
        made += trace.RECORD.pack(trace.TICK_RECORD, len(body)) + body
        memory = tick.after
    made += trace.RECORD.pack(trace.END_RECORD, trace.END.size) + trace.END.pack(len(ticks))
    path.write_bytes(made)
    return path


def _changes(old: bytes, new: bytes) -> bytes:
    changed = [at for at in range(len(new)) if old[at] != new[at]]
    return trace.COUNT.pack(len(changed)) + b"".join(trace.RUN.pack(at, 1) + new[at : at + 1] for at in changed)
