"""Battle reports: what happened in a recorded battle, line by line; from the recording alone."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.recordings.recording import FLAGS, Frame, Recording
from protege.games.echelon.rules.battle import (
    ASSIST,
    BY_ELIMINATION,
    BY_SCORE,
    BY_TIME,
    DEATH,
    FRIENDLY_KILL,
    KILL,
    KNOCKDOWN,
    LASER_HIT,
    LEGGED,
    PROJECTILE_HIT,
    SHUTDOWN,
    ZONE_ENTER,
)
from protege.games.echelon.world.mechs import BLUE, CLASS_NAMES, NOBODY, RED, TICK_S, WEAPONS, Records

TEAM_NAMES: Final = ("blue", "red")
ENDINGS: Final = {BY_ELIMINATION: "by elimination", BY_SCORE: "by score", BY_TIME: "when time was up"}
REPORT_EVERY_S: Final = 15.0

Flags = npt.NDArray[np.bool_]


def flag(mechs: Records, name: str) -> Flags:
    """One of the FLAGS of recorded mechs."""
    return np.asarray(mechs["flags"] >> FLAGS.index(name) & 1 != 0)


def mech_name(header: dict[str, Any], i: int) -> str:
    """What a mech is called: blue medium 3."""
    mech = header["mechs"][i]
    return f"{TEAM_NAMES[mech['team']]} {CLASS_NAMES[mech['kind']]} {mech['rank'] + 1}"


def clock(seconds: float) -> str:
    """Minutes, seconds and tenths."""
    return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


def report_lines(recording: Recording) -> Iterator[str]:
    """A battle told line by line: who, when, what."""
    header = recording.header
    yield from _opening(header)
    told = _Told()
    for frame in recording:
        yield from told.frame(header, frame)
    yield from _ending(recording)


def _opening(header: dict[str, Any]) -> Iterator[str]:
    x, y, _ = header["size"]
    blue, red = header["players"]
    yield f"{blue} (blue) against {red} (red): {header['roster']}, map seed {header['seed']}, {x} x {y} columns"
    recipe = header.get("recipe")
    if recipe:
        yield f"landscapes: {', '.join(recipe['variant']['biomes'])}; zone of radius {header['zone'][2]:.1f}"
    yield ""


class _Told:
    """What has been told so far, so that nothing is told twice."""

    def __init__(self) -> None:
        self.entered: set[int] = set()  # teams
        self.hit, self.leader, self.report = False, NOBODY, REPORT_EVERY_S

    def frame(self, header: dict[str, Any], frame: Frame) -> Iterator[str]:
        """What is worth telling of one frame."""
        seconds = float(frame.now["tick"]) * TICK_S
        for event in np.sort(frame.events, order="tick", kind="stable"):
            line = self._event(header, frame, event)
            if line:
                yield f"{clock(float(event['tick']) * TICK_S):>7}  {line}"
        blue, red = (float(score) for score in frame.now["score"])
        leader = NOBODY if blue == red else BLUE if blue > red else RED
        if leader not in (NOBODY, self.leader):
            if self.leader != NOBODY:
                yield f"{clock(seconds):>7}  {TEAM_NAMES[leader]} takes the lead"
            self.leader = leader
        if seconds >= self.report:
            self.report += REPORT_EVERY_S
            yield f"{clock(seconds):>7}  -- {_standing(frame)}"

    def _event(self, header: dict[str, Any], frame: Frame, event: Any) -> str:
        """One event in words, or nothing."""
        kind, who, whom = int(event["kind"]), int(event["who"]), int(event["whom"])
        if kind in (KILL, FRIENDLY_KILL):
            helpers = [
                mech_name(header, int(other["who"]))
                for other in frame.events
                if other["kind"] == ASSIST and other["whom"] == whom
            ]
            friendly = " of its own team" if kind == FRIENDLY_KILL else ""
            return f"{mech_name(header, who)} kills {mech_name(header, whom)}{friendly} ({_weapon(event)})" + (
                f", helped by {', '.join(helpers)}" if helpers else ""
            )
        if kind == DEATH and whom == NOBODY:
            return f"{mech_name(header, who)} burns"
        if kind == KNOCKDOWN:
            return f"{mech_name(header, whom)} is knocked down by {mech_name(header, who)} ({_weapon(event)})"
        if kind == LEGGED:
            return f"{mech_name(header, whom)} loses its legs to {mech_name(header, who)} ({_weapon(event)})"
        if kind == SHUTDOWN:
            return f"{mech_name(header, who)} overheats"
        if kind in (LASER_HIT, PROJECTILE_HIT) and not self.hit:
            self.hit = True
            return f"first hit: {mech_name(header, who)} on {mech_name(header, whom)} ({_weapon(event)})"
        if kind == ZONE_ENTER and header["mechs"][who]["team"] not in self.entered:
            self.entered.add(header["mechs"][who]["team"])
            return f"{mech_name(header, who)} is the first of its team in the zone"
        return ""


def _weapon(event: Any) -> str:
    return WEAPONS[int(event["weapon"])].name if event["weapon"] >= 0 else "its own heat"


def _standing(frame: Frame) -> str:
    """Score, the living and the zone at a glance."""
    (blue, red), living = frame.now["score"], frame.now["living"]
    heavy = frame.now["tonnage"]
    zone = "empty" if not heavy.any() else "contested" if heavy.all() else f"{TEAM_NAMES[int(heavy[RED] > 0)]}'s"
    return f"blue {blue:.1f}, red {red:.1f}; {living[BLUE]} against {living[RED]} alive; zone {zone}"


def _ending(recording: Recording) -> Iterator[str]:
    header, last = recording.header, recording.frame(recording.frames - 1)
    result, seconds = header["result"], float(last.now["tick"]) * TICK_S
    who = "nobody" if result["winner"] == NOBODY else f"{TEAM_NAMES[result['winner']]} ({_player(header)})"
    how = ENDINGS.get(result["ending"], "(not played to the end)")
    yield f"{clock(seconds):>7}  {who} wins {how}: {_standing(last)}"
    yield ""
    frames, _ = recording.everything()
    kills = frames["events"][frames["events"]["kind"] == KILL]
    yield f"{'':<18}{'kills':>6}{'damage':>8}{'HP left':>9}"
    for i, mech in enumerate(last.mechs):
        yield f"{mech_name(header, i):<18}{(kills['who'] == i).sum():>6}{mech['dealt']:>8.0f}{mech['hp']:>9.0f}"


def _player(header: dict[str, Any]) -> str:
    return str(header["players"][header["result"]["winner"]])
