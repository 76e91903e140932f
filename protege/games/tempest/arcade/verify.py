"""Checks the simulator against a machine: replays a trace tick by tick and names the first byte that differs.

Every tick is replayed from the machine's own memory with the random bytes that its program read, so a difference in one
tick does not spoil the next. The rules run uncompiled, on a memory that notes which rule wrote which byte.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from protege.games.tempest.agents.players import Player, find_player
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, rehearse
from protege.games.tempest.arcade.fleet import SCRIPTS, Settings
from protege.games.tempest.arcade.mame import ArcadeError, Emulator
from protege.games.tempest.arcade.streams import Decisions, Places
from protege.games.tempest.arcade.trace import Tick, Trace
from protege.games.tempest.rules import enemies, motion, nymphs, player, ram, sim, states
from protege.games.tempest.task.env import Frames

NOISE: Final = 0x60CA  # where a program reads random bytes
SHOWN: Final = 8  # lines of each list

# What the simulator keeps of the machine's memory, as ram.py calls it; all else is sound, picture and coins.
_BYTES: Final = """
GAME_STATE NEXT_STATE TICK COUNTDOWN GAME_MODE CREDITS SCORE_LOW SCORE_MID SCORE_HIGH P1_LEVEL LIVES BUTTONS_RAW BUTTONS
BUTTONS_NEW BUTTONS_PREVIOUS SPINNER PLAYER_POSITION CAMERA_HIGH CAMERA_FRACTION CAMERA_REST CAMERA_LOW LEVEL_INDEX
ENEMY_SHOTS SHOT_TOLERANCE PULSAR_WAIT RIM_FLIP_STEPS START_CHOICE DROP_SPEED_LOW DROP_SPEED_HIGH DROPPING
PLAYER_DEPTH_FRACTION ENEMIES_IN_TUBE ENEMIES_ON_RIM BOOM_TIMER OPEN TUBE EXPLOSIONS SHOT_SPEED_HIGH SHOT_HOLDOFF
SHOT_SLOT_MAX ENEMY_SLOT_MAX SHOT_SPEED_LOW SPIKE_WARNING BONUS_FLASH ZAP_TIMER BEST_LEVEL MAX_CHOICE PLAYER_SHOTS
PULSE_STEP PULSE_PHASE BONUS_INTERVAL PULSE_DEPTH INITIAL_LIVES FUSE_FLAGS START_SPIKE START_NYMPHS FLIPPER_SCRIPT
FUSE_THRESHOLD DIFFICULTY DELAY_MASK PULSAR_FIRE PLAYER_LANE PLAYER_EDGE PLAYER_DEPTH ZAP_USES NYMPHS_LEFT ENTRY_RANK
ENTRY_LETTER ENTRY_FRACTION LETTERS_LEFT ENTRY_TIMER
""".split()
_ARRAYS: Final = {
    "TYPE_MIN TYPE_MAX TYPE_ROOM TYPE_COUNT TYPE_TOLERANCE SPEED_LOW SPEED_HIGH": ram.TYPE_KINDS,
    "TANKER_CARGO ESHOT_LANE ESHOT_EDGE ESHOT_DEPTH ESHOT_FRACTION": ram.ESHOT_COUNT,
    "NYMPH_LANE NYMPH_TIMER": ram.NYMPH_COUNT,
    "ENEMY_TYPE ENEMY_INFO ENEMY_SCRIPT ENEMY_COUNTER ENEMY_FRACTION ENEMY_SHOT_DELAY ENEMY_LANE ENEMY_EDGE "
    "ENEMY_DEPTH": ram.ENEMY_COUNT,
    "PSHOT_LANE PSHOT_EDGE PSHOT_DEPTH PSHOT_HITS": ram.PSHOT_COUNT,
    "BLAST_LANE BLAST_TYPE BLAST_DEPTH BLAST_PHASE": ram.BLAST_COUNT,
    "SPIKE TUBE_X TUBE_Y TUBE_ANGLE": ram.LANE_COUNT,
    "INITIALS BEST_SCORES": 3 * ram.BEST_SCORE_COUNT,
}
NAMES: Final = {getattr(ram, name): name for name in _BYTES} | {
    getattr(ram, name) + i: f"{name}[{i}]"
    for names, count in _ARRAYS.items()
    for name in names.split()
    for i in range(count)
}
# Interrupts write these at any time; the player's moves are in them.
CONTROLS: Final = (ram.BUTTONS_RAW, ram.BUTTONS, ram.BUTTONS_NEW, ram.BUTTONS_PREVIOUS, ram.SPINNER)
# Clients write these between ticks: credits, and in the start menu the choice.
POKED: Final = (ram.CREDITS, ram.BEST_LEVEL, ram.MAX_CHOICE, ram.PLAYER_LANE)
COMPARED: Final = sorted(set(NAMES) - set(CONTROLS))
_RULES: Final = (ram, motion, nymphs, player, enemies, states, sim)


class _Memory(bytearray):
    """A row of memory that notes who wrote its bytes since `writers` was cleared."""

    writers: dict[int, str]

    def __setitem__(self, at: Any, value: Any) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals["__name__"] == ram.__name__:  # its functions write for others
            frame = frame.f_back
        assert frame is not None
        self.writers[int(at)] = _name(frame)
        super().__setitem__(int(at), int(value) & 0xFF)


def _name(frame: FrameType) -> str:
    return f"{frame.f_globals['__name__'].rpartition('.')[2]}.{frame.f_code.co_name}"


class PlainRules:
    """The simulator's rules, uncompiled and fed with random bytes that are given."""

    def __init__(self) -> None:
        copies = {module.__name__: ModuleType(module.__name__) for module in _RULES}

        def plain(thing: Any) -> Any:
            if isinstance(thing, ModuleType):
                return copies.get(thing.__name__, thing)
            function = getattr(thing, "py_func", thing)
            if isinstance(function, FunctionType) and function.__module__ in copies:
                if function.__name__ == "random_byte":
                    return self._draw
                # Each function once for each module that uses it: their names lead to the module it came from.
                names = copies[function.__module__].__dict__
                return FunctionType(function.__code__, names, function.__name__, function.__defaults__)
            return thing

        for module in _RULES:
            copies[module.__name__].__dict__.update({name: plain(thing) for name, thing in vars(module).items()})
        self._tick = copies[sim.__name__].tick
        self._bytes: Sequence[int] = ()
        self.drawn, self.last_draw = 0, ""

    def tick(self, before: bytes, reads: Sequence[int]) -> _Memory:
        """Memory after one tick. Draws beyond the bytes given are zero; `drawn` says how many there were."""
        memory = _Memory(before.ljust(ram.ROW_BYTES, b"\0"))
        memory.writers = {}
        self._bytes, self.drawn = reads, 0
        with np.errstate(over="ignore"):  # as in compiled code
            self._tick(memory)
        return memory

    def _draw(self, row: object) -> int:
        self.drawn, self.last_draw = self.drawn + 1, _name(sys._getframe(1))
        return self._bytes[self.drawn - 1] if self.drawn <= len(self._bytes) else 0


@dataclass(frozen=True)
class Difference:
    """One byte that is not what the simulator says."""

    tick: int  # from 1
    state: int
    address: int
    name: str
    machine: int
    simulator: int
    rule: str

    def __str__(self) -> str:
        if self.address == NOISE:
            read = f"the program read {self.machine} random bytes, the simulator drew {self.simulator}"
        else:
            what = f"${self.address:04X} {self.name}"
            read = f"{what} is ${self.machine:02X} on the machine, ${self.simulator:02X} in the simulator"
        return f"tick {self.tick:,}, state ${self.state:02X}: {read}; {self.rule}"


@dataclass
class Report:
    """How far simulator and machine agree."""

    ticks: int = 0
    agreed: int = 0
    play_ticks: int = 0  # of those: a real game, in play or in the zoom
    play_agreed: int = 0
    surplus_reads: int = 0  # ticks in which the program read more random bytes than its rules use
    first: list[Difference] = field(default_factory=list)  # those of the first tick that differs, by address
    bytes: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # ticks by name of the byte, without index, and rule

    def figures(self) -> dict[str, Any]:
        """The report as flat figures."""
        first = self.first[0] if self.first else None
        found = {name: getattr(first, name) if first else None for name in Difference.__dataclass_fields__}
        return {
            "ticks": self.ticks, "agreed": self.agreed, "play_ticks": self.play_ticks, "play_agreed": self.play_agreed,
            "surplus_reads": self.surplus_reads, **{f"first_{name}": value for name, value in found.items()},
        }  # fmt: skip


def verify(ticks: Iterable[Tick], every_byte: bool = False) -> Report:
    """Replay the ticks of a trace. `every_byte` is for traces whose memory has no sound and no picture in it."""
    rules, report, last = PlainRules(), Report(), None
    compared = range(ram.RAM_BYTES) if every_byte else COMPARED
    between = [at for at in compared if at not in CONTROLS and (every_byte or at not in POKED)]
    for tick in ticks:
        report.ticks += 1
        found = [] if last is None else _between(report.ticks, last, tick.before, between)
        found += _replayed(rules, report, tick, compared)
        playing = tick.before[ram.GAME_STATE] in (ram.PLAYING, ram.ZOOM) and tick.before[ram.GAME_MODE] & ram.REAL_GAME
        report.agreed += not found
        report.play_ticks += bool(playing)
        report.play_agreed += bool(playing) and not found
        report.bytes.update({(difference.name.partition("[")[0], difference.rule) for difference in found})
        report.first = report.first or found
        last = tick.after
    return report


def _between(number: int, last: bytes, now: bytes, compared: Iterable[int]) -> list[Difference]:
    """What changed after one tick and before the next, when no rule is at work."""
    if last == now:
        return []
    rule = "changed between two ticks, by the picture, an interrupt or somebody's hand"
    return [
        Difference(number, now[ram.GAME_STATE], at, NAMES.get(at, "unnamed"), now[at], last[at], rule)
        for at in compared if last[at] != now[at]
    ]  # fmt: skip


def _replayed(rules: PlainRules, report: Report, tick: Tick, compared: Iterable[int]) -> list[Difference]:
    number, state, reads = report.ticks, tick.before[ram.GAME_STATE], tick.reads
    memory = rules.tick(tick.before, reads)
    used, asked = rules.drawn, rules.last_draw
    wrong = [at for at in compared if memory[at] != tick.after[at]]
    if used > len(reads):
        return [Difference(number, state, NOISE, "random bytes", len(reads), used, f"rule {asked}")]
    surplus = len(reads) - used
    report.surplus_reads += surplus > 0
    if wrong and surplus and used:  # a check of the noise itself reads it too: leave those reads out, wherever they are
        for at in range(used):
            other = rules.tick(tick.before, reads[:at] + reads[at + surplus :])
            if rules.drawn == used and all(other[i] == tick.after[i] for i in compared):
                return []
    return [
        Difference(
            number, state, at, NAMES.get(at, "unnamed"), tick.after[at], memory[at],
            f"rule {memory.writers[at]}" if at in memory.writers else _owner(at),
        )
        for at in wrong
    ]  # fmt: skip


def _owner(address: int) -> str:
    """Who could have written a byte that no rule wrote in this tick."""
    name = NAMES.get(address, "").partition("[")[0]
    found = [
        f"{module.__name__.rpartition('.')[2]}.{thing.__name__}"
        for module in _RULES[1:] for thing in vars(module).values()
        if name and getattr(thing, "__module__", "") == module.__name__ and hasattr(thing, "py_func")
        and name in thing.py_func.__code__.co_names
    ]  # fmt: skip
    return "no rule wrote it in this tick" + (f"; those that can: {', '.join(found)}" if found else "")


def print_report(report: Report, trace: Trace) -> None:
    """The report in words."""
    cut = "" if trace.whole else " (the file ends without its last record: the recording was cut off)"
    print(f"{trace.machine}: {report.ticks:,} ticks, {report.play_ticks:,} of them in play{cut}")
    if not report.ticks:
        print("Nothing to compare.")
    elif report.agreed == report.ticks:
        print(f"All {report.ticks:,} agree: each of {len(COMPARED)} bytes is what the simulator says.")
    else:
        print(f"{report.agreed:,} agree, {report.play_agreed:,} of those in play. The first that does not:")
        print("\n".join(f"  {difference}" for difference in report.first[:SHOWN]))
        print("Most often:")
        print(
            "\n".join(f"  {name}, {count:,} ticks; {rule}" for (name, rule), count in report.bytes.most_common(SHOWN))
        )
    if report.surplus_reads:
        print(f"In {report.surplus_reads:,} ticks the program read more random bytes than its rules use.")


class _Playing(Agent):
    def __init__(self, player: Player):
        self.player = player

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        return Decisions(self.player.act(frames), 0)


def record(
    emulator: Emulator, path: Path, *, play: str, ticks: int, start_level: int | None = None, runs: Path | None = None
) -> None:
    """Let somebody play in MAME for so many ticks, and write down what its program does."""
    who = find_player(play, runs)
    who.act(rehearse())
    with TemporaryDirectory(prefix="protege-mame-") as folder, Bridge(_Playing(who), BridgeConfig(port=0)) as bridge:
        told = {"PROTEGE_TRACE": str(path.absolute()), "PROTEGE_TRACE_TICKS": str(ticks)}
        settings = Settings(f"127.0.0.1:{bridge.port}", start_level=start_level)
        told |= {f"PROTEGE_{name.upper()}": text for name, text in settings.by_name().items()}
        process = emulator.start(Path(folder) / "client", SCRIPTS / "trace.lua", told)
        try:
            said, _ = process.communicate()
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "it gave no reason")
        raise ArcadeError(f"MAME ended with exit code {process.returncode}: {last}", "mend that and record again")
