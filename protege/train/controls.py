"""What a person may change in a training while it runs: the controls there are, and how each of them stands.

Console keys and page send the same commands, those of `CONTROLS`, through the run's inbox. The training hands them to
its `Controls`, which answer with a line to read, and asks these what has become of its schedules. No control
overwrites what another one remembers. Knows no game, no learner and no file.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from protege import ProtegeError

PULSE_FRAMES: Final = 500_000  # from one valley of the epsilon pulse to the next
PULSE_TOP: Final = 0.25
LOWEST_PEAK, HIGHEST_PEAK = 1e-6, 1e-2  # of the learning rate


class ControlError(ProtegeError):
    """A command with arguments that its control does not take."""


@dataclass(frozen=True)
class Control:
    """Something a training can be asked to do."""

    name: str  # the command
    group: str  # controls of a group belong together on the page
    meaning: str
    keys: str  # in the terminal; of a number: down, on schedule and up, or only down and up
    key_help: str  # what they do, in the terminal's list
    argument: Literal["", "toggle", "number"] = ""
    low: float = 0.0  # of a number
    high: float = 1.0
    unit: Literal["", "fraction"] = ""
    confirm: bool = False  # a page asks before it is sent
    key_asks: str = ""  # what the terminal asks at a first press; only a second one counts
    label: str = ""  # on the page; without it, the name

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name.replace("_", " ").capitalize())

    def key_arguments(self) -> dict[str, dict[str, Any]]:
        """What each key sends."""
        if self.argument != "number":
            return {key: {} for key in self.keys}
        sent: list[dict[str, Any]] = [{"step": -1}, {"schedule": True}, {"step": 1}]
        return dict(zip(self.keys, sent if len(self.keys) == 3 else sent[::2]))

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise unless the arguments are some that this control takes."""
        match self.argument, dict(arguments):
            case _, given if not given and self.argument != "number":  # a toggle without arguments goes the other way
                return
            case "toggle", {"on": bool(), **rest} if not rest:
                return
            case "number", {"step": -1 | 1 as step, **rest} if not rest and type(step) is int:
                return
            case "number", {"schedule": True, **rest} if not rest:
                return
            case "number", {"value": int() | float() as value, **rest} if not rest and not isinstance(value, bool):
                if self.low <= value <= self.high:  # false for what is not a number, too
                    return
        wanted = {
            "": "no arguments",
            "toggle": '{"on": true or false}, or nothing to change it',
            "number": f'{{"value": {self.low:g} to {self.high:g}}}, {{"step": -1 or 1}} or {{"schedule": true}}',
        }[self.argument]
        raise ControlError(f"command {self.name} takes {wanted}; got {json.dumps(dict(arguments))[:80]}")


_CONTROLS: Final = (
    Control("save", "run", "write a checkpoint now", "s", "save now"),
    Control(
        "evaluate", "run", "evaluate the pupil on held-out games as soon as possible", "x", "evaluate the pupil now",
    ),
    Control("stop", "run", "save and end the training; it can be resumed", "q", "save and quit", confirm=True),
    Control(
        "learning_rate", "learning", "its peak; the whole schedule is scaled to it", "lL",
        "learning rate halved, doubled", "number", LOWEST_PEAK, HIGHEST_PEAK,
    ),
    Control("learning", "learning", "off: it plays on, but makes no updates", "t", "learning on/off", "toggle"),
    Control(
        "epsilon", "exploration", "probability of a random move", "456", "epsilon down, on schedule, up", "number",
        unit="fraction",
    ),
    Control(
        "greedy", "exploration", "no random moves at all as long as it is on", "p", "greedy on/off: epsilon 0", "toggle"
    ),
    Control(
        "pulse", "exploration",
        f"epsilon rises to {100 * PULSE_TOP:.0f} % and falls back every {PULSE_FRAMES:,} frames",
        "P", "epsilon pulse on/off", "toggle",
    ),
    Control(
        "teacher", "teacher", "fraction of its moves, or weight of its advice", "789", "teacher down, on schedule, up",
        "number", unit="fraction",
    ),
    Control("teacher_off", "teacher", "no teacher as long as it is on", "o", "teacher off, and back", "toggle"),
    Control(
        "teacher_only", "teacher", "nothing but the teacher (100 %) as long as it is on", "e", "teacher only, and back",
        "toggle",
    ),
    Control("attention", "learner", "what the network looks at, as a table", "a", "attention report"),
    Control("replay", "learner", "what the replay holds, as a table", "b", "replay statistics"),
    Control(
        "flush", "learner", "empty the replay", "f", "empty the replay: press twice", confirm=True,
        label="Flush replay", key_asks="empty the replay?",
    ),
    Control(
        "clients", "arcade", "everybody who is connected, and why frames were refused, as a table",
        "w", "who is connected, one by one",
    ),
)  # fmt: skip
CONTROLS: Final = {control.name: control for control in _CONTROLS}


@dataclass(frozen=True)
class Report:
    """A learner's answer that is a table."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """The table in plain characters; columns of numbers, except the first, stand to the right."""
        padded = []
        for number, column in enumerate(zip(self.columns, *self.rows)):
            width = max(map(len, column))
            right = number > 0 and all(word[:1] in "+-0123456789" for word in column[1:])
            padded.append([word.rjust(width) if right else word.ljust(width) for word in column])
        return "\n".join([self.title, *("  ".join(line).rstrip() for line in zip(*padded))])


class Scheduled(NamedTuple):
    """What the settings alone would give now."""

    frames: int
    epsilon: float  # probability of a random move
    teacher: float  # fraction of its moves, or weight of its advice


class Controls:
    """How the controls of one training stand. One thread obeys commands, others may ask meanwhile."""

    def __init__(
        self, peak_rate: float, reports: Mapping[str, Callable[[], Report | str]] | None = None,
        lacks: Sequence[str] = (), pulse_from: int | None = None,
    ) -> None:  # fmt: skip
        """`peak_rate` is that of the settings; `reports` answer the learner's own commands, as far as it has any.

        `lacks` are controls that mean nothing to the learner. Where the settings have epsilon pulses, they begin at
        frame `pulse_from`.
        """
        self.peak_rate, self.lacks, self.pulse_from = peak_rate, lacks, pulse_from
        self.reports = dict(reports or {})
        self.learning = True
        self.greedy = False
        self.fixed: dict[str, float | None] = {"epsilon": None, "teacher": None}  # none: on schedule
        self.pulse_since = pulse_from  # the frame it begins at, None while it is off
        self.teacher_mode: Literal["", "off", "only"] = ""
        self.rate_factor = 1.0  # times the whole schedule, so that its end can never lie above its beginning

    def epsilon(self, scheduled: Scheduled) -> float:
        if self.greedy:
            return 0.0
        fixed = self.fixed["epsilon"]
        base = scheduled.epsilon if fixed is None else fixed
        if self.pulse_since is None or scheduled.frames < self.pulse_since or base >= PULSE_TOP:
            return base
        turn = (scheduled.frames - self.pulse_since) % PULSE_FRAMES / PULSE_FRAMES
        return base + (PULSE_TOP - base) * (1 - abs(2 * turn - 1))

    def teacher(self, scheduled: Scheduled) -> float:
        if self.teacher_mode:
            return 0.0 if self.teacher_mode == "off" else 1.0
        fixed = self.fixed["teacher"]
        return scheduled.teacher if fixed is None else fixed

    def obey(self, name: str, arguments: Mapping[str, Any], scheduled: Scheduled) -> Report | str:
        """Do what a command asks for; the answer is for whoever asked."""
        control = CONTROLS.get(name)
        if control is None or name not in self.view():
            return f"{name} means nothing to this learner"
        try:
            control.check(arguments)
        except ControlError as problem:
            return f"not done: {problem}"
        if control.argument == "":
            return self.reports[name]()
        if control.argument == "toggle":
            return self._toggle(name, arguments.get("on", not self.view()[name]["on"]), scheduled)
        return self._set_rate(arguments) if name == "learning_rate" else self._fix(name, arguments, scheduled)

    def _toggle(self, name: str, on: bool, scheduled: Scheduled) -> str:
        match name:
            case "learning":
                self.learning = on
                return "learning on" if on else "learning off: it plays on, without updates"
            case "greedy":
                self.greedy = on
                return f"greedy {'on' if on else 'off'}: epsilon {percent(self.epsilon(scheduled))}"
            case "pulse":
                if not on:
                    self.pulse_since = None
                    return f"epsilon pulse off: epsilon {percent(self.epsilon(scheduled))}"
                self.pulse_since = scheduled.frames if self.pulse_since is None else self.pulse_since
                return f"epsilon pulse on: up to {percent(PULSE_TOP)} and back every {PULSE_FRAMES:,} frames"
            case "teacher_off" | "teacher_only":
                mode: Literal["off", "only"] = "off" if name == "teacher_off" else "only"
                if on:
                    self.teacher_mode = mode
                elif self.teacher_mode == mode:
                    self.teacher_mode = ""
                return f"teacher {mode}{'' if on else ' ends'}: teacher {percent(self.teacher(scheduled))}"
        raise AssertionError(f"{name} is no toggle")

    def _fix(self, name: str, arguments: Mapping[str, Any], scheduled: Scheduled) -> str:
        """Epsilon or the teacher: at a value, a step from where it is, or on schedule again."""
        usual, fixed = getattr(scheduled, name), self.fixed[name]
        if "schedule" in arguments:
            self.fixed[name], told = None, f"back on schedule: {percent(usual)}"
        else:
            now = usual if fixed is None else fixed
            wanted = stepped(now, arguments["step"]) if "step" in arguments else float(arguments["value"])
            self.fixed[name], told = wanted, f"{percent(wanted)}, fixed"
        hiding = "greedy" * self.greedy if name == "epsilon" else self.teacher_mode and f"teacher {self.teacher_mode}"
        return f"{name} {told}" + (f"; {hiding} is on, so not yet" if hiding else "")

    def _set_rate(self, arguments: Mapping[str, Any]) -> str:
        now = self.peak_rate * self.rate_factor
        match arguments:
            case {"schedule": True}:
                self.rate_factor = 1.0
                return f"learning rate back on schedule: {self.peak_rate:.3g} at its peak"
            case {"step": step}:
                # Settings may lie beyond the limits; a step never moves such a peak the wrong way.
                peak = min(max(now * 2.0**step, min(LOWEST_PEAK, now)), max(HIGHEST_PEAK, now))
                if peak == now:
                    return f"learning rate stays {peak:.3g} at its peak, which is the limit"
            case _:
                peak = float(arguments["value"])
        self.rate_factor = peak / self.peak_rate
        return f"learning rate {peak:.3g} at its peak, {self.rate_factor:.3g} times the setting"

    def view(self) -> dict[str, dict[str, Any]]:
        """Every command this training has a use for, and how it stands, for whoever shows it."""
        peak, changed = self.peak_rate * self.rate_factor, self.rate_factor != 1.0
        stand: dict[str, dict[str, Any]] = {
            "learning": {"on": self.learning},
            "learning_rate": {"value": peak if changed else None, "peak": peak, "overridden": changed},
            "greedy": {"on": self.greedy},
            "pulse": {"on": self.pulse_since is not None, "scheduled": self.pulse_from is not None},
            "teacher_off": {"on": self.teacher_mode == "off"},
            "teacher_only": {"on": self.teacher_mode == "only"},
        }
        hidden = {"epsilon": self.greedy or self.pulse_since != self.pulse_from, "teacher": self.teacher_mode != ""}
        for name, fixed in self.fixed.items():
            stand[name] = {"value": fixed, "overridden": fixed is not None or hidden[name]}
        stand = {name: how for name, how in stand.items() if name not in self.lacks}
        return stand | {name: {} for name in self.reports}

    def changed(self) -> str:
        """What differs from the settings, in words; empty if nothing does."""
        fixed = {name: [f"{name} fixed at {percent(value)}"] for name, value in self.fixed.items() if value is not None}
        said = fixed.get("epsilon", []) + ["greedy"] * self.greedy
        if self.pulse_since != self.pulse_from:
            said.append("no epsilon pulse" if self.pulse_since is None else "epsilon pulse")
        said += fixed.get("teacher", [])
        said += [f"teacher {self.teacher_mode}"] * bool(self.teacher_mode)
        if self.rate_factor != 1.0:
            said.append(f"learning rate times {self.rate_factor:.3g}")
        return ", ".join(said)

    def state(self) -> dict[str, Any]:
        """For a checkpoint. Whether it learns is left out: who resumes a training wants it to learn."""
        kept = ("greedy", "pulse_since", "pulse_from", "teacher_mode", "rate_factor")
        return {name: getattr(self, name) for name in kept} | self.fixed

    def restore(self, state: Mapping[str, Any]) -> None:
        self.fixed = {name: state[name] for name in self.fixed}
        if state["pulse_since"] != state.get("pulse_from"):  # else the settings, which may be other ones now, decide
            self.pulse_since = state["pulse_since"]
        self.greedy, self.teacher_mode, self.rate_factor = (state[k] for k in ("greedy", "teacher_mode", "rate_factor"))


def stepped(fraction: float, direction: int) -> float:
    """A fraction one step up or down: a point where it is small (down from 10 % or less, up from less), else five."""
    points = round(100 * fraction, 4)
    small = points <= 10 if direction < 0 else points < 10
    return min(100.0, max(0.0, points + direction * (1 if small else 5))) / 100


def percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"
