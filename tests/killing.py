"""Processes that write until they are killed, for tests of what is left afterwards.

A nursery is a process that has imported everything and forks a writer on request, because starting Python with torch
for every kill would take most of the time. A writer says how far it got in a file that only it appends to.
"""

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[1]
NUMBER = struct.Struct("<q")
WEIGHTS = 200_000  # numbers in a checkpoint: large enough that many kills meet a half-written file
METRICS = 20


@dataclass
class Killed:
    """What happened to the writers."""

    kills: int = 0
    in_the_middle: int = 0  # kills that left a half-written draft
    written: int = 0  # things whose writing had returned
    kept_extra: int = 0  # things found although the writer was killed before it could say so


class Nursery:
    """Forks writers and buries them."""

    def __enter__(self) -> Self:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killing"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._ask("hello") == "hello"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def kill_a_writer(self, what: str, folder: Path, delay_s: float, *, at_work: bool = False) -> int:
        """Let a writer work for a while, kill it, and return the last number it finished.

        With `at_work` the while begins when it has finished one.
        """
        notes = folder / "said"
        before = notes.stat().st_size if notes.exists() else 0
        pid = int(self._ask(f"{what} {folder}"))
        patience = time.monotonic() + 30
        while at_work and not (notes.exists() and notes.stat().st_size > before) and time.monotonic() < patience:
            time.sleep(0.001)
        time.sleep(delay_s)
        os.kill(pid, signal.SIGKILL)
        assert self._ask("bury") == str(signal.SIGKILL.value), "the writer ended by itself, see its error above"
        said = notes.read_bytes() if notes.exists() else b""
        whole = len(said) // NUMBER.size * NUMBER.size
        return int(NUMBER.unpack(said[whole - NUMBER.size : whole])[0]) if whole else 0

    def _ask(self, line: str) -> str:
        assert self._process.stdin and self._process.stdout
        print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()


def kill_savers(folder: Path, kills: int, seed: int) -> Killed:
    """Kill a process that saves checkpoints again and again; each time the last one must be whole and the newest."""
    from protege.runs.checkpoints import load
    from protege.runs.files import remove_drafts

    moments, result, number = random.Random(seed), Killed(), 0
    with Nursery() as nursery:
        for kill in range(kills):
            delay_s, is_last = moments.uniform(0, 0.08), kill == kills - 1  # the last gets to work on any machine
            # What an earlier writer saved but could not report is where the next one went on.
            finished = max(number, nursery.kill_a_writer("save", folder, delay_s, at_work=is_last))
            last = folder / "last.safetensors"
            result.in_the_middle += any(folder.glob(".*.tmp"))
            remove_drafts(folder)
            if finished or last.exists():
                checkpoint = load(last, kind="test", task_version=1)
                number = checkpoint.state["number"]
                assert finished <= number <= finished + 1, f"said {finished}, found {number}"
                assert (checkpoint.tensors["weights"] == number).all() and (checkpoint.state["array"] == number).all()
                result.kept_extra += number - finished
            result.kills, result.written = result.kills + 1, finished
    assert {path.name for path in folder.iterdir()} == {"said", "last.safetensors"}
    return result


def kill_loggers(folder: Path, kills: int, seed: int) -> Killed:
    """Kill a process that logs metrics again and again; every value it had logged must be there."""
    from protege.runs.run import open_run

    moments, result, number = random.Random(seed), Killed(), 0
    with Nursery() as nursery:
        for kill in range(kills):
            delay_s, is_last = moments.uniform(0.03, 0.12), kill == kills - 1  # the last gets to work on any machine
            finished = max(number, nursery.kill_a_writer("log", folder, delay_s, at_work=is_last))
            result.kills, result.written = result.kills + 1, finished
            if not (folder / "run" / "run.json").exists():
                continue
            with open_run("run", folder) as run:
                # A child that the writer was about to start holds the lock a moment longer.
                deadline = time.monotonic() + 5
                while run.status() == "running" and time.monotonic() < deadline:
                    time.sleep(0.01)
                assert run.status() == "crashed"
                latest = run.metrics.latest()
                steps = {point.step for point in latest.values()}
                assert len(steps) == min(len(latest), 1), "values logged together are kept together"
                number = max(steps, default=0)
                assert finished <= number <= finished + 1
                for name in ("m0", f"m{METRICS - 1}"):
                    assert run.metrics.series(name, most_points=10**9).steps == list(range(1, number + 1))
                result.kept_extra += number - finished
    shutil.rmtree(folder / "run")
    return result


def kill_filers(folder: Path, kills: int, seed: int) -> Killed:
    """Kill a process that files league matches, two at a time; each filing must be there whole or not at all.

    It also adds players, ends periods and retires members. Afterwards everything is counted anew from the matches.
    """
    from protege.league.league import open_league
    from tests.league.league_games import make_league, recount

    make_league(folder / "league", league_rules()).close()
    moments, result, number = random.Random(seed), Killed(), 0
    with Nursery() as nursery:
        for _ in range(kills):
            finished = max(number, nursery.kill_a_writer("file", folder, moments.uniform(0, 0.1), at_work=True))
            result.in_the_middle += any((folder / "league").glob("**/.*.tmp"))
            with open_league(str(folder / "league")) as league:
                counts = league.counts()
                assert counts["matches"] % 2 == 0, "what was filed together is there together"
                number = counts["matches"] // 2
                assert finished <= number <= finished + 1, f"said {finished}, found {number}"
                recount(league)
            result.kept_extra += number - finished
            result.kills, result.written = result.kills + 1, finished
    return result


def league_rules() -> Any:
    from protege.league.matchmaking import Rules

    return Rules(period_games=8, limit=4)


def file_for_ever(folder: Path) -> None:
    from protege.league.league import open_league
    from protege.league.ledger import MEMBER, SCRIPTED, Result
    from tests.league.league_games import add_member

    league = open_league(str(folder / "league"))
    number = league.counts()["matches"] // 2
    with _said(folder) as said:
        while True:
            number += 1
            if number % 5 == 0 and f"member-{number}" not in {entry.name for entry in league.entries()}:
                add_member(league, number)  # or it came in just before a kill
            pool = league.entries(SCRIPTED, MEMBER)
            first, second = pool[number % len(pool)], pool[(number + 1) % len(pool)]
            maps = league.reserve_maps(first.id, second.id, 2)
            league.file([Result(first.id, second.id, (number + map) % 3 / 2, map, recording=b"seen") for map in maps])
            said.write(NUMBER.pack(number))


def save_for_ever(folder: Path) -> None:
    import numpy as np
    import torch

    from protege.runs.checkpoints import load, save

    last = folder / "last.safetensors"
    number = load(last).state["number"] if last.exists() else 0
    with _said(folder) as said:
        while True:
            number += 1
            weights = {"weights": torch.full((WEIGHTS,), float(number))}
            save(last, weights, {"number": number, "array": np.full(1000, number)}, kind="test", task_version=1)
            said.write(NUMBER.pack(number))


def log_for_ever(folder: Path) -> None:
    from protege.runs.metrics import Metric
    from protege.runs.run import create_run, resume_run

    metrics = [Metric(f"m{number}", "", "a number", "numbers") for number in range(METRICS)]
    if (folder / "run" / "run.json").exists():
        run = resume_run("run", metrics, folder=folder)
    else:
        run = create_run("game", "learner", {}, metrics, name="run", folder=folder)
    number = max((point.step for point in run.metrics.latest().values()), default=0)
    with _said(folder) as said:
        while True:
            number += 1
            run.log(number, **{metric.name: number / 7 for metric in metrics})
            said.write(NUMBER.pack(number))


def _said(folder: Path):
    return (folder / "said").open("ab", buffering=0)


def main() -> None:
    import tests.league.league_games  # noqa: F401 - with all that writers need, imported once

    writers = {"save": save_for_ever, "log": log_for_ever, "file": file_for_ever}
    child = 0
    for line in sys.stdin:
        match line.split():
            case ["bury"]:
                _, status = os.waitpid(child, 0)
                answer, child = str(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1), 0
            case [what, folder]:
                child = os.fork()
                if child == 0:
                    writers[what](Path(folder))
                answer = str(child)
            case _:
                answer = line.strip()
        print(answer, flush=True)
    if child:
        os.kill(child, signal.SIGKILL)  # whoever asked for it is gone


if __name__ == "__main__":
    main()
