"""The console of a training: every key in a real terminal, left as it was, and plain lines without one."""

import io
import os
import re
import shutil
import signal
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console

from protege.cli.console import HELP, KEYS, Rows, TrainingConsole, short
from protege.games.echelon.training import metrics as echelon
from protege.games.tempest.training.config import PRESETS
from protege.games.tempest.training.metrics import METRICS
from protege.games.tempest.training.trainer import TRAINER
from protege.runs.metrics import Column, Metric
from protege.runs.run import open_run
from protege.train.controls import CONTROLS, Controls, Report
from protege.train.loop import train
from protege.train.session import Result
from tests.dashboard.serving import make_run

if os.name == "nt":
    pytest.skip("there are no pseudo-terminals here", allow_module_level=True)

from tests.cli.terminals import Terminal

START_SECONDS = 240.0  # the game may have to be compiled first
ROW = r"(?m)^ +\d[\d,]* .*\n"
WORDS = "train tempest --preset smoke --minutes 60 --compare 0 --no-dashboard --run r --eval-frames 400"


def training(folder):
    return [sys.executable, "-m", "protege.cli", *WORDS.split(), "--runs", str(folder)]


def wait_until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


# --- in a real terminal ---


@pytest.mark.slow
def test_every_key_does_what_the_table_says(tmp_path):
    """One training in a shell, as a person has it: every key in turn, Ctrl-Z and back, and out."""
    with Terminal("sh", "-i") as terminal, open_run_later(tmp_path) as run:
        terminal.wait_for("ready> ")
        terminal.type(" ".join(training(tmp_path)) + "\n")
        terminal.wait_for(r"keys  \? lists them; q saves and quits", START_SECONDS)
        wait_until(terminal.hands_keys_over_at_once)
        terminal.wait_for(r"Frame +FPS +Epsi% +Tchr%.* LR\n", 60)

        def figure(name):
            return run().metrics.latest()[name].value

        # Keys that only the console has a use for.
        terminal.type("?")
        wait_until(lambda: all(meaning in terminal.text() for _, meaning in HELP))
        assert re.match(r" +Frame +FPS", terminal.press("h", r" +Frame +FPS.*\n")[0])
        terminal.press(" ", ROW)
        terminal.press("V", "verbose on: events and details of evaluations")
        before = len(terminal.raw)
        terminal.press("c", "Frame +FPS")
        assert "\x1b[2J" in terminal.raw[before:], "the screen is cleared"
        terminal.press("z", r"no key z: \? lists")

        # Saving and measuring; verbose tells more of both.
        terminal.press("s", r"saved at frame [\d,]+")
        terminal.press("x", r"measured now[\s\S]*eval +[\d,]+ points[\s\S]*lives lost to: shot \d+", 60)
        terminal.wait_for(r"\d\d:\d\d:\d\d  autosave: frame")
        terminal.press("v", "verbose off")

        # Exploration: the schedule has reached its 2 % by now.
        wait_until(lambda: run().metrics.latest()["epsilon"].step > 50_000 and figure("epsilon") == 0.02)
        terminal.press("4", "epsilon 1 %, fixed")
        terminal.press("6", "epsilon 2 %, fixed")
        terminal.press("6", "epsilon 3 %, fixed")
        terminal.press("5", "epsilon back on schedule: 2 %")
        terminal.press("P", "epsilon pulse on: up to 25 % and back every 500,000 frames")
        wait_until(lambda: 0.02 < figure("epsilon") <= 0.25)
        terminal.press("P", "epsilon pulse off: epsilon 2 %")
        # Teacher, learning rate, greedy: the figures follow.
        fixed = terminal.press("7", r"teacher ([\d.]+) %, fixed")[1]
        terminal.press("e", "teacher only: teacher 100 %")
        terminal.press("o", "teacher off: teacher 0 %")
        terminal.press("L", "learning rate 0.002 at its peak, 2 times the setting")
        terminal.press("p", "greedy on: epsilon 0 %")
        wait_until(lambda: figure("epsilon") == 0 and figure("distillation") == 0 and figure("learning_rate") > 0.0015)
        assert re.search(r" 0\* +0\* .* 0\.00\d+\*\n", terminal.press(" ", ROW)[0]), "all are marked"
        terminal.press("o", f"teacher off ends: teacher {re.escape(fixed)} %")
        terminal.press("9", r"teacher [\d.]+ %, fixed")
        terminal.press("8", "teacher back on schedule:")
        terminal.press("l", "learning rate 0.001 at its peak")
        # Without learning it plays on.
        terminal.press("t", "learning off: it plays on, without updates")
        wait_until(lambda: figure("updates_per_s") == 0 and figure("frames_per_s") > 0)
        terminal.wait_for("not learning")
        terminal.press("T", "learning on")
        # Questions to a learner that has no answer to them.
        terminal.press("f", r"empty the replay\? Press f again within 4 seconds")
        for key, name in (("f", "flush"), ("a", "attention"), ("b", "replay"), ("w", "clients")):
            terminal.press(key, f"{name} means nothing to this learner")

        # Page up is an escape and a 5, which nobody pressed. Ctrl-Z leaves the shell a sane terminal.
        terminal.type("\x1b[5~")
        terminal.press("\x1a", "Stopped|suspended")
        terminal.press("stty -a\n", r" icanon [\s\S]* echo ")
        terminal.press("fg\n", "training")
        wait_until(terminal.hands_keys_over_at_once)
        terminal.press("p", "greedy off: epsilon 2 %")

        assert set(KEYS) == set("qsxtpP456789oelLabfw"), "every key was pressed"
        terminal.press("q", r"saving and stopping[\s\S]*Go on for longer[\s\S]*ready> ", 60)
        assert terminal.modes() == terminal.before
        told = [event.text.partition(":")[0] for event in run().metrics.events() if event.kind == "command"]
        assert told.count("epsilon") == 4 and told[-1] == "stop" and run().status() == "stopped"
        assert run().controls()["greedy"] == {"on": False} and run().controls()["epsilon"]["value"] is None


class open_run_later:
    """The run that a training will make, opened when it is first asked for."""

    def __init__(self, folder):
        self.folder, self.run = folder, None

    def __enter__(self):
        return self.opened

    def opened(self):
        self.run = self.run or open_run("r", self.folder)
        return self.run

    def __exit__(self, *_):
        if self.run:
            self.run.close()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["terminated", "crashed"])
def test_the_terminal_is_as_it_was_however_a_training_ends(end, tmp_path):
    with Terminal(*training(tmp_path)) as terminal:
        wait_until(terminal.hands_keys_over_at_once, START_SECONDS)
        if end == "terminated":
            terminal.process.send_signal(signal.SIGTERM)
            terminal.wait_for("saving and stopping")
        else:
            shutil.rmtree(tmp_path / "r" / "checkpoints")
            terminal.press("s", "could not be saved")
        assert terminal.process.wait(timeout=60) == (0 if end == "terminated" else 2), terminal.text()
        assert terminal.modes() == terminal.before
        assert terminal.raw.rfind("\x1b[?25h") > terminal.raw.rfind("\x1b[?25l"), "the cursor can be seen again"
        assert open_run("r", tmp_path).status() == ("stopped" if end == "terminated" else "crashed")


def test_a_program_that_is_told_to_end_before_its_training_starts_leaves_by_the_door(tmp_path):
    program = "import time; from protege.cli.console import TrainingConsole\nwith TrainingConsole() as console:\n"
    program += " console.keys.start(); print('now', flush=True); time.sleep(60)\n"
    with Terminal(sys.executable, "-c", program) as terminal:
        terminal.wait_for("now")
        wait_until(terminal.hands_keys_over_at_once)
        terminal.process.terminate()
        assert terminal.process.wait(timeout=20) == 128 + signal.SIGTERM
        assert terminal.modes() == terminal.before


@pytest.mark.slow
def test_without_a_terminal_there_are_plain_lines(tmp_path):
    class Brief(TrainingConsole):
        """Ends the training once it has told something of it."""

        def progressed(self, frames, done, figures):
            super().progressed(frames, done, figures)
            self.press("q")

    lines = io.StringIO()
    config = replace(PRESETS["smoke"], minutes=0.0, eval_frames=100)
    with Brief(Console(file=lines)) as console:
        train(TRAINER, config, console, name="r", folder=tmp_path, prepare=console.follow)
    printed = lines.getvalue()
    assert "\x1b" not in printed and "keys" not in printed and printed.endswith("\n  saving and stopping\n")
    found = re.search(r"\n( +Frame Done +Left +FPS .*)\n(.*)\n", printed)
    assert found, printed
    header, row = found.groups()
    assert len(header.split()) == len(row.split()) == 19 and len(header) == len(row)


# --- rows ---


def console_of(run, width=80, terminal=True):
    """A console that writes to a string, and the string so far."""
    screen = io.StringIO()
    console = TrainingConsole(Console(file=screen, width=width, force_terminal=terminal, color_system=None))
    console.follow(run)
    return console, screen.getvalue


FIGURES = {"frames_per_s": 51_234.0, "epsilon": 0.02, "loss": 0.5}


def test_a_row_averages_what_is_noisy_since_the_row_before(tmp_path):
    with make_run(tmp_path, "r", 0) as run:
        console, screen = console_of(run)
        console.progressed(1_000_000, 0.1, FIGURES)
        for loss in (1.0, 3.0):
            console.progressed(2_000_000, 0.2, FIGURES | {"loss": loss})
        console.press(" ")
        console.press(" ")  # nothing new has come: the last value
    lines = [line.split() for line in screen().splitlines()]
    assert lines == [
        ["Frame", "FPS", "Epsi%", "Loss"],
        ["1,000,000", "51.2k", "2", "0.5"],
        ["2,000,000", "51.2k", "2", "2"],
        ["2,000,000", "51.2k", "2", "3"],
    ]


def test_an_evaluation_is_told_in_the_games_words_and_its_figures_reach_the_rows(tmp_path):
    with make_run(tmp_path, "r", 0) as run:
        console, screen = console_of(run)
        console.progressed(1, 0.1, FIGURES)
        result = Result({"loss": 0.125}, (0.78,), "7 of 9 races", headline="78 %", detail="rain in all")
        console.evaluated(result, True)
        console.press("v")
        console.evaluated(result, False)
        console.press(" ")
    lines = [line.split() for line in screen().splitlines()]
    assert lines[2:] == [
        "eval 7 of 9 races, the best so far".split(),
        "verbose on: events and details of evaluations".split(),
        "eval 7 of 9 races".split(),
        "rain in all".split(),
        ["1", "51.2k", "2", "0.125"],
    ]
    assert console.result == "78 %"


def test_the_header_comes_again_after_thirty_rows_and_when_asked(tmp_path):
    with make_run(tmp_path, "r", 0) as run:
        console, screen = console_of(run)
        console.progressed(1, 0.1, FIGURES)
        for _ in range(30):
            console.press(" ")
        console.press("H")
        console.press(" ")
    heads = [number for number, line in enumerate(screen().splitlines()) if "Frame" in line]
    assert heads == [0, 31, 33]  # 30 rows, the next with its header, and one that was asked for


def test_what_a_person_has_overridden_is_marked(tmp_path):
    controls = Controls(1e-3)
    with make_run(tmp_path, "r", 0) as run:
        console, screen = console_of(run)
        console.controlled(controls.view())
        console.progressed(1, 0.1, FIGURES)
        controls.greedy = True
        console.controlled(controls.view())
        console.press(" ")
    assert [line.split()[2] for line in screen().splitlines()] == ["Epsi%", "2", "2*"]


MORE = (
    Metric("stored", "moves", "moves in the replay", "replay", column=Column("Mem-k", 3, 2, 7, "thousands")),
    Metric("by_teacher", "moves", "played by the teacher", "replay", column=Column("T/P/R%", 4, 3, 9, "mix")),
    Metric("by_pupil", "moves", "played by the pupil", "replay", column=Column("T/P/R%", 4, 3, 9, "mix")),
    Metric("by_chance", "moves", "played at random", "replay", column=Column("T/P/R%", 4, 3, 9, "mix")),
    Metric("highest", "", "value", "values", column=Column("Range", 2, 5, 13, "range")),
    Metric("lowest", "", "value", "values", column=Column("Range", 2, 5, 13, "range")),
    Metric("lost", "", "moves that were lost", "dropped items", column=Column("Drop", 5, 4)),
    Metric("turns_per_s", "1/s", "turns", "speed", role="rate", column=Column("TPS", 1, 1)),
)


def test_columns_are_those_of_what_a_learner_declares(tmp_path):
    figures = {"stored": 8e6, "by_teacher": 2e6, "by_pupil": 5e6, "by_chance": 1e6, "highest": 3.5, "lost": 3}
    with make_run(tmp_path, "r", 0, (Metric("eval_score", "", "", "score"), *MORE)) as run:
        console, screen = console_of(run)
        console.progressed(1, 0.1, figures | {"turns_per_s": 90.0})
        console.progressed(1, 0.1, {"lowest": -0.25})
        console.press(" ")
    lines = [line.split() for line in screen().splitlines()]
    assert lines == [
        ["Frame", "TPS", "Range", "Mem-k", "T/P/R%", "Drop"],
        ["1", "90", "-", "8,000", "25/62/12", "3"],
        ["1", "90", "-0.25…3.5", "8,000", "25/62/12", "3"],
    ]


EVERY = {"tempest pqn": METRICS["pqn"], "tempest rainbow": METRICS["rainbow"], "echelon": echelon.METRICS}


@pytest.mark.parametrize("metrics", EVERY.values(), ids=EVERY)
def test_narrow_terminals_lose_the_least_important_columns_first(metrics):
    rows = Rows()
    rows.declare(metrics)
    columns = list(rows.columns)
    before: list[str] = []
    for width in range(20, 400):
        fitting = rows.fitting(width)
        assert sum(column.width + 1 for column in fitting) <= width
        titles = [column.title for column in fitting]
        assert titles == [column.title for column in columns if column.title in titles], "always in the same order"
        assert set(before) <= set(titles), "more room never hides a column"
        before = titles
    assert len(before) == len(columns)
    for places in ([column.rank for column in columns], [column.place for column in columns]):
        assert len(set(places)) == len(columns), "no two columns claim one place"


def test_the_columns_of_each_learner():
    titles = {}
    for name, metrics in EVERY.items():
        rows = Rows()
        rows.declare(metrics)
        titles[name] = " ".join(column.title for column in rows.columns)
    assert titles == {
        "tempest pqn": "FPS Epsi% Tchr% 100K 1M 5M Loss Agree% EpLen BCLoss Levl Inf-ms Upd/s GrNorm Q-Range LR",
        "tempest rainbow": "FPS Epsi% Tchr% 100K 1M 5M Loss Agree% EpLen BCLoss Clnt Levl Inf-ms Upd/s Smp/F GrNorm "
        "Q-Range Mem-k T/P/R% Drop LR",
        "echelon": "Steps/s Win% Eval% Earned Sec PLoss VLoss Imit Entr KL Clip% ExVar Stg Upd/s GrNorm LR",
    }


def test_numbers_fit_their_columns():
    shown = {0: "0", 0.02: "0.02", 0.00012: "0.0001", -3.456: "-3.46", 99.96: "100", 1234: "1234", 12_345: "12.3k"}
    shown |= {999_999: "1M", 9_999.7: "10k", 5_123_456: "5.12M", -45_600: "-45.6k", 2.5e9: "2.5G"}
    assert {value: short(value) for value in shown} == shown


def test_a_report_is_a_table_above_the_bar(tmp_path):
    with make_run(tmp_path, "r", 0) as run:
        console, screen = console_of(run)
        console.reported(Report("attention [of 256 frames]", ("head", "entropy"), (("1", "0.93"), ("2", "1.41"))))
    assert screen() == "attention [of 256 frames]\nhead  entropy\n1        0.93\n2        1.41\n"


# --- keys ---


def test_every_key_sends_a_command_that_its_control_takes(tmp_path):
    with make_run(tmp_path, "r", 0) as run:
        console, screen = console_of(run)
        for key, (control, _) in KEYS.items():
            console.press(key)
            if control.key_asks:
                console.press(key)
        sent = run.commands()
    assert [(command.name, command.arguments) for command in sent] == [
        (control.name, arguments) for control, arguments in KEYS.values()
    ]
    for command in sent:
        CONTROLS[command.name].check(command.arguments)
    asked = ["empty the replay? Press f again within 4 seconds"]
    assert [line.strip() for line in screen().splitlines()] == asked, "else the training answers, not the key"


def test_emptying_the_replay_wants_a_second_press_soon_after_the_first(tmp_path, monkeypatch):
    with make_run(tmp_path, "r", 0) as run:
        console, screen = console_of(run)
        console.press("f")
        assert run.commands() == [] and "empty the replay? Press f again within 4 seconds" in screen()
        console.press("F")
        assert [command.name for command in run.commands()] == ["flush"]
        console.press("f")
        assert run.commands() == [], "the next one asks again"
        monkeypatch.setattr(console, "pressed_at", time.monotonic() - 4.1)
        console.press("f")
        assert run.commands() == [], "too late"


def test_a_key_that_reaches_nobody_says_so(tmp_path):
    run = make_run(tmp_path, "r", 0)
    console, screen = console_of(run)
    run.close()
    console.press("s")
    assert "run r is not being trained, so nobody would read the command save" in " ".join(screen().split())


def test_the_help_lists_every_key_and_nothing_else():
    listed = {key for keys, _ in HELP for key in keys.split()}
    assert listed == set(KEYS) | {"space", "h", "c", "v", "?"}
    assert all(meaning and len(meaning) <= 30 for _, meaning in HELP)
