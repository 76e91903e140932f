"""Battle reports: what happened in a recorded battle, line by line; from the recording alone."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.recordings.recording import FLAGS, Frame, Recording
from protege.games.echelon.rules import events
from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_SCORE, BY_TIME
from protege.games.echelon.world.mechs import BLUE, CLASS_NAMES, NOBODY, RED, TICK_S, WEAPONS, Records

TEAM_NAMES: Final = ("blue", "red")
ENDINGS: Final = {BY_ELIMINATION: "by elimination", BY_SCORE: "by score", BY_TIME: "when time was up"}
REPORT_EVERY_S: Final = 15.0
SAID: Final = {
    events.KNOCKDOWN: "{whom} is knocked down by {who} ({weapon})",
    events.LEGGED: "{whom} loses its legs to {who} ({weapon})",
    events.SHUTDOWN: "{who} overheats",
}

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
    (x, y, _), (blue, red) = header["size"], header["players"]
    yield f"{blue} (blue) against {red} (red): {header['roster']}, map seed {header['seed']}, {x} x {y} columns"
    if recipe := header.get("recipe"):
        yield f"landscapes: {', '.join(recipe['variant']['biomes'])}; zone of radius {header['zone'][2]:.1f}"
    yield ""
    told: set[Any] = set()  # what is told only once
    ahead, report = NOBODY, REPORT_EVERY_S
    for frame in recording:
        for event in np.sort(frame.events, order="tick", kind="stable"):
            if line := _event(header, frame, event, told):
                yield f"{clock(float(event['tick']) * TICK_S):>7}  {line}"
        seconds, (blue, red) = float(frame.now["tick"]) * TICK_S, frame.now["score"].tolist()
        leader = NOBODY if blue == red else BLUE if blue > red else RED
        if leader not in (NOBODY, ahead):
            if ahead != NOBODY:
                yield f"{clock(seconds):>7}  {TEAM_NAMES[leader]} takes the lead"
            ahead = leader
        if seconds >= report:
            report += REPORT_EVERY_S
            yield f"{clock(seconds):>7}  -- {_standing(frame)}"
    yield from _ending(recording)


def _event(header: dict[str, Any], frame: Frame, event: Any, told: set[Any]) -> str:
    """One event in words, or nothing."""
    kind, i, j = int(event["kind"]), int(event["who"]), int(event["whom"])
    if kind == events.VOXEL_DESTROYED:  # whose weapon is a material
        return ""
    who, whom = (mech_name(header, mech) for mech in (i, j))
    weapon = WEAPONS[int(event["weapon"])].name if event["weapon"] >= 0 else "its own heat"
    if kind in (events.KILL, events.FRIENDLY_KILL):
        helped = frame.events[(frame.events["kind"] == events.ASSIST) & (frame.events["whom"] == j)]
        helpers = ", ".join(mech_name(header, int(other["who"])) for other in helped)
        friendly = " of its own team" if kind == events.FRIENDLY_KILL else ""
        return f"{who} kills {whom}{friendly} ({weapon})" + (f", helped by {helpers}" if helpers else "")
    if kind == events.DEATH and j == NOBODY:
        return f"{who} burns"
    if kind in (events.LASER_HIT, events.PROJECTILE_HIT) and "hit" not in told:
        told.add("hit")
        return f"first hit: {who} on {whom} ({weapon})"
    if kind == events.ZONE_ENTER and header["mechs"][i]["team"] not in told:
        told.add(header["mechs"][i]["team"])
        return f"{who} is the first of its team in the zone"
    return SAID.get(kind, "").format(who=who, whom=whom, weapon=weapon)


def _standing(frame: Frame) -> str:
    """Score, the living and the zone at a glance."""
    (blue, red), living = frame.now["score"], frame.now["living"]
    heavy = frame.now["tonnage"]
    zone = "empty" if not heavy.any() else "contested" if heavy.all() else f"{TEAM_NAMES[int(heavy[RED] > 0)]}'s"
    return f"blue {blue:.1f}, red {red:.1f}; {living[BLUE]} against {living[RED]} alive; zone {zone}"


def _ending(recording: Recording) -> Iterator[str]:
    header, last = recording.header, recording.frame(recording.frames - 1)
    result, seconds = header["result"], float(last.now["tick"]) * TICK_S
    winner = result["winner"]
    who = "nobody" if winner == NOBODY else f"{TEAM_NAMES[winner]} ({header['players'][winner]})"
    how = ENDINGS.get(result["ending"], "(not played to the end)")
    yield f"{clock(seconds):>7}  {who} wins {how}: {_standing(last)}"
    yield ""
    frames, _ = recording.everything()
    kills = frames["events"][frames["events"]["kind"] == events.KILL]
    yield f"{'':<18}{'kills':>6}{'damage':>8}{'HP left':>9}"
    for i, mech in enumerate(last.mechs):
        yield f"{mech_name(header, i):<18}{(kills['who'] == i).sum():>6}{mech['dealt']:>8.0f}{mech['hp']:>9.0f}"
