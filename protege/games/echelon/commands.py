"""Echelon's own commands: battles played, measured, shown, told, filmed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tyro.conf import Positional

from protege import ProtegeError
from protege.cli.page import serve_page
from protege.cli.tables import print_table
from protege.games import Command
from protege.machine import usable_cores


@dataclass(frozen=True, kw_only=True)
class _Sides:
    # who leads blue: trivial, easy, medium, hard, expert, champion, random, a run, a checkpoint, package.module:Class
    blue: str = "champion"
    red: str = "expert"  # who leads red
    seed: int = 1  # seed of the maps and the battles
    roster: str = "10v10"  # teams and their sizes; an unknown name lists all
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True, kw_only=True)
class Match(_Sides):
    """Let two sides fight one battle and record it."""

    out: Path = Path("match.rec")  # the file to write


@dataclass(frozen=True, kw_only=True)
class Eval(_Sides):
    """Evaluate one side against another: every map is played twice, with the sides swapped."""

    matches: int = 200  # battles, an even number
    threads: int = 0  # threads that play; 0 for one per core


@dataclass(frozen=True)
class Watch:
    """Watch battles in the browser: a recorded one, two side by side, or those of a training as they finish."""

    # The file that "protege match echelon" wrote. Without it, or --run, the newest battle of any run; and where there
    # is none, one that is fought for you.
    recording: Positional[Path | None] = None
    beside: Path | None = None  # a second recording to show beside it: another player on the same seed
    run: str | None = None  # the run whose battles to watch; new ones appear as they finish
    text: bool = False  # as text on the terminal, line by line, without a browser
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    host: str = "127.0.0.1"  # address to listen on; 0.0.0.0 lets other machines see the page
    port: int = 8765  # port, or the next free one
    no_browser: bool = False  # do not open a browser


@dataclass(frozen=True, kw_only=True)
class Record(_Sides):
    """Film a battle as a GIF, MP4 or WebM file: a recorded one, or one that is fought for the film."""

    out: Path  # the file to write; its ending chooses the format: .gif, .mp4 or .webm
    recording: Positional[Path | None] = None  # the file that "protege match echelon" wrote; without it, a new battle
    begin: float = 0.0  # the second of the battle at which the film begins
    seconds: float = 0.0  # film so many seconds of the battle; 0 goes on to its end
    speed: float = 2.0  # times as fast as the battle was
    rate: float = 12.5  # pictures a second
    width: int = 640  # of the picture; its height is 9/16 of that


def run_match(command: Match) -> int:
    from protege.games.echelon.agents.match import Setting, fight

    setting = Setting(command.roster)
    made = fight(command.blue, command.red, command.out, seed=command.seed, setting=setting, runs=command.runs)
    rows = [
        [f"{side} ({made[side]})", *(f"{made[f'{side}_{key}']:,.0f}" for key in ("score", "living", "kills", "damage"))]
        for side in ("blue", "red")
    ]
    title = f"{made['winner']} wins by {made['ending']}" if made["winner"] != "nobody" else "a draw"
    head = ("side", "score", "alive", "kills", "damage")
    print_table(
        f"{title} after {made['length']:.0f} s, {made['roster']}, seed {made['seed']}", head, rows, (1, 2, 3, 4)
    )
    print(f"{made['file']}: {made['bytes'] / 1e6:.1f} MB; watch it with: protege watch echelon {made['file']}")
    if command.json:
        print(json.dumps(made))
    return 0


def run_eval(command: Eval) -> int:
    from protege.games.echelon.agents.match import Setting, evaluate

    found = evaluate(
        command.blue, command.red, matches=command.matches, seed=command.seed, setting=Setting(command.roster),
        threads=command.threads or usable_cores(), runs=command.runs,
    )  # fmt: skip
    print(
        f"{found['blue']} against {found['red']}, {found['matches']} battles of {found['roster']}, "
        f"seed {found['seed']}: wins {100 * found['blue_win_rate']:.1f} % "
        f"({100 * found['blue_win_rate_low']:.1f}–{100 * found['blue_win_rate_high']:.1f}, draws as halves), "
        f"{found['draws']} draws, {found['length_mean']:.0f} s each on average"
    )
    if command.json:
        print(json.dumps(found))
    return 0


def run_watch(command: Watch) -> int:
    from tempfile import TemporaryDirectory
    from urllib.parse import urlencode

    from protege.games.echelon.agents.match import fight
    from protege.games.echelon.page.views import EchelonViews
    from protege.games.echelon.recordings.battle_report import report_lines
    from protege.games.echelon.recordings.recording import Recording
    from protege.runs.run import open_run

    if command.text:
        if command.recording is None:
            raise ProtegeError("--text tells one recorded battle: protege watch echelon FILE --text")
        for line in report_lines(Recording.open(command.recording)):
            print(line)
        return 0
    if command.recording and command.run:
        raise ProtegeError("give a recording or --run, not both: a run's recordings are in its folder recordings/")
    if command.beside and not command.recording:
        raise ProtegeError("--beside needs a recording to stand beside: protege watch echelon FILE --beside OTHER")
    recordings = [path for path in (command.recording, command.beside) if path]
    for path in recordings:
        Recording.open(path).checked()  # what cannot be shown is said here, before a page opens
    if command.run:
        open_run(command.run, command.runs).close()
        return serve_page(command, f"/echelon/battle?{urlencode({'run': command.run})}")
    with TemporaryDirectory() as folder:
        if not recordings and not EchelonViews(command.runs).about()["battles"]:
            told = "no battle is recorded yet: the champion fights expert (protege match echelon makes others)"
            print(told, flush=True)
            recordings = [Path(folder) / "champion-expert.rec"]
            fight("champion", "expert", recordings[0])
        shown = urlencode(list(zip(("given", "beside"), range(len(recordings)))))
        return serve_page(command, f"/echelon/battle?{shown}", {"echelon": recordings})


def run_record(command: Record) -> int:
    from tempfile import TemporaryDirectory

    from protege.games.echelon.agents.match import Setting, fight
    from protege.games.echelon.recordings.film import film
    from protege.games.echelon.recordings.recording import Recording
    from protege.video import check_video_path, write_video

    check_video_path(command.out)
    with TemporaryDirectory() as folder:
        path = command.recording or Path(folder) / "battle.rec"
        if not command.recording:
            setting = Setting(command.roster)
            fight(command.blue, command.red, path, seed=command.seed, setting=setting, runs=command.runs)
        recording = Recording.open(path)
    recording.checked()
    pictures = film(
        recording, width=command.width, begin=command.begin, seconds=command.seconds, speed=command.speed,
        rate=command.rate,
    )  # fmt: skip
    write_video(pictures, command.out, command.rate)
    blue, red = recording.header["players"]
    size = command.out.stat().st_size
    print(f"{command.out}: {blue} against {red}, {size / 1e6:.1f} MB")
    if command.json:
        print(json.dumps({"blue": blue, "red": red, "file": str(command.out), "bytes": size}))
    return 0


COMMANDS: Final = {
    "eval": Command(Eval, run_eval),
    "match": Command(Match, run_match),
    "watch": Command(Watch, run_watch),
    "record": Command(Record, run_record),
}
