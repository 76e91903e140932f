"""Commands of any game that somebody brings: players measured, watched and recorded, the game itself checked."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tyro.conf import Positional, UseAppendAction

from protege.cli.page import serve_page
from protege.cli.tables import print_json, print_table
from protege.games import Command, Figures

if TYPE_CHECKING:
    from protege.games.own.world.arena import World

Worlds = Callable[..., "World"]


@dataclass(frozen=True)
class Eval:
    """Evaluate players: every player plays the same episodes, each fixed by its seed."""

    # Who plays: teacher, random, the name of a run, the path of a checkpoint, or your own package.module:Class. May be
    # given several times.
    player: UseAppendAction[tuple[str, ...]] = ("random",)
    teacher: str = ""  # package.module:name of the teacher; without it, that of the runs named, or of the newest
    games: int = 200  # episodes for each player
    seed: int = 1  # seed of the episodes: the same seed gives the same episodes
    longest: int = 20_000  # frames after which an episode is truncated, and counted as such
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object for each player, the last line among them


def run_eval(name: str, worlds: Worlds, command: Eval) -> int:
    from protege.games.own.agents.players import TABLE_HEAD, evaluate, players_of, table_rows, teacher_of

    teacher = command.teacher or ("teacher" in command.player and teacher_of(name, command.player, command.runs)) or ""
    world = worlds(teacher)
    players = players_of(world)
    found = [players.find(player, command.runs) for player in command.player]  # a typo costs no time
    given: dict[str, Any] = {"games": command.games, "seed": command.seed, "longest": command.longest}
    results = [evaluate(world, who, player, **given) for who, player in zip(command.player, found)]
    title = f"{world.title}, {command.games} episodes each, seed {command.seed}"
    print_table(title, TABLE_HEAD, table_rows(results), tuple(range(2, len(TABLE_HEAD))), wrap=False)
    return print_json(command, *results)


@dataclass(frozen=True)
class Doctor:
    """Check a game: spaces, Gymnasium's own checker, seeding, determinism, speed, its teacher, what training costs."""

    teacher: str = ""  # package.module:name of a teacher to try
    json: bool = False  # also print one flat JSON object on the last line


def run_doctor(name: str, worlds: Worlds, command: Doctor) -> int:
    from protege.games.own.checks import checks

    rows = checks(name, worlds, command.teacher)
    print_table(name, ("", "", "found", "remark"), [[row.state, row.name, row.found, row.advice] for row in rows])
    found: dict[str, Any] = {"ok": all(row.state == "ok" for row in rows)}
    for row in rows:
        found |= {row.name: row.found, f"{row.name}_ok": row.state == "ok"}
    print_json(command, found)
    return 0 if found["ok"] else 1


def measured(name: str, worlds: Worlds, player: str, *, games: int, seed: int, runs: Path | None) -> Figures:
    """Figures of one player by name; `teacher=PLACE` is the teacher at a place."""
    from protege.games.own.agents.players import evaluate, players_of, teacher_of

    player, _, place = player.partition("=") if player.startswith("teacher=") else (player, "", "")
    world = worlds(place or (teacher_of(name, (), runs) if player == "teacher" else ""))
    return evaluate(world, player, players_of(world).find(player, runs), games=games, seed=seed)


@dataclass(frozen=True)
class Watch:
    """Watch a player in the browser, as the game draws itself."""

    player: str = "random"  # who plays, as in "protege eval"
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    host: str = "127.0.0.1"  # address to listen on; 0.0.0.0 lets other machines see the page
    port: int = 8765  # port, or the next free one
    no_browser: bool = False  # do not open a browser


def run_watch(name: str, place: str, command: Watch) -> int:
    return serve_page(command, f"/{name}/live?{urlencode({'player': command.player})}", {place: (command.player,)})


@dataclass(frozen=True)
class Record:
    """Record an episode as a film: GIF, MP4 or WebM."""

    out: Path  # the file to write; its ending chooses the format: .gif, .mp4 or .webm
    player: str = "random"  # who plays, as in "protege eval"
    teacher: str = ""  # package.module:name of the teacher; without it, that of the newest run that has one
    seed: int = 1  # seed of the episodes
    best_of: int = 1  # play so many episodes and record the one with the highest return
    longest: int = 1_000  # frames after which the film ends
    rate: float = 30.0  # frames a second
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object on the last line


def run_record(name: str, worlds: Worlds, command: Record) -> int:
    from protege.games.own.agents.players import play, players_of, teacher_of
    from protege.games.own.world.arena import Arena
    from protege.seeds import EVALUATION
    from protege.video import check_video_path, write_video

    check_video_path(command.out)
    teacher = command.teacher or (teacher_of(name, (), command.runs) if command.player == "teacher" else "")
    world = worlds(teacher, pictures=True)
    player = players_of(world).find(command.player, command.runs)
    returns = [episode.reward for episode in play(world, player, command.best_of, command.seed, command.longest)]
    best = max(range(len(returns)), key=returns.__getitem__)
    arena = Arena(world, 1, EVALUATION, command.seed, command.longest, begun=best)

    def pictures() -> Iterator[Any]:
        while not arena.episodes:
            yield arena.render()
            arena.step(player.act(arena))

    try:
        write_video(pictures(), command.out, command.rate)
    finally:
        arena.close()
    (episode,) = arena.taken_episodes()
    made = {
        "player": command.player, "seed": command.seed, "game": best, "return": episode.reward,
        "frames": episode.frames, "file": str(command.out), "bytes": command.out.stat().st_size,
    }  # fmt: skip
    print(f"{command.out}: {command.player}, episode {best}, return {episode.reward:,.4g} in {episode.frames:,} frames")
    return print_json(command, made)


@dataclass(frozen=True)
class Export:
    """Write a pupil as an ONNX model that other programs can run, with a description of its input and output."""

    run: Positional[str]  # the name of a run (its best pupil), or the path of a checkpoint
    out: Path  # the folder to write model.onnx and description.json into
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object on the last line


def run_export(worlds: Worlds, command: Export) -> int:
    from protege.games.own.agents.export import export

    made = export(worlds(""), command.run, command.out, command.runs)
    difference = f"largest difference {made['difference']:.1e} in {made['observations']} frames"
    print(f"{made['model']}: {made['player']}; {difference}")
    return print_json(command, made)


def commands(name: str, place: str, worlds: Worlds) -> Mapping[str, Command]:
    return {
        "eval": Command(Eval, partial(run_eval, name, worlds)),
        "doctor": Command(Doctor, partial(run_doctor, name, worlds)),
        "watch": Command(Watch, partial(run_watch, name, place)),
        "export": Command(Export, partial(run_export, worlds)),
        "record": Command(Record, partial(run_record, name, worlds)),
    }
