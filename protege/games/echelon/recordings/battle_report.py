"""What a recorded battle was like: figures about how it went, and its course in words.

Both come from the recording alone, so that they can be had of any battle at any time.
"""

from collections.abc import Iterator
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.recordings.recording import FLAGS, Counts, Frame, Frames, Recording
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
    MISSILE_LAUNCH,
    PROJECTILE_HIT,
    SHUTDOWN,
    SMOKE_LAUNCH,
    VOXEL_DESTROYED,
    ZONE_ENTER,
)
from protege.games.echelon.world.mechs import BLUE, CLASS_NAMES, NOBODY, RED, TICK_S, WEAPONS, Records

TEAM_NAMES: Final = ("blue", "red")
ENDINGS: Final = {BY_ELIMINATION: "by elimination", BY_SCORE: "by score", BY_TIME: "when time was up"}
IDLE_S: Final = 3.0  # without a step or a shot, outside the zone: idle or stuck
STEP: Final = 1.0  # voxels
REPORT_EVERY_S: Final = 15.0

Flags = npt.NDArray[np.bool_]


def flag(mechs: Records, name: str) -> Flags:
    """One of the FLAGS of recorded mechs."""
    return np.asarray(mechs["flags"] >> FLAGS.index(name) & 1 != 0)


# --- figures ---------------------------------------------------------------------------------------------------------


def figures(recording: Recording) -> dict[str, float]:
    """How one battle went, as one row of numbers; nan where there is nothing to measure."""
    frames, counts = recording.everything()
    mechs, events, now = frames["mechs"], frames["events"], frames["now"]
    seconds = recording.header["seconds_per_frame"] * (recording.frames - 1)
    teams = np.array([mech["team"] for mech in recording.header["mechs"]])
    kinds = np.array([mech["kind"] for mech in recording.header["mechs"]])
    alive, kind = flag(mechs[1:], "alive"), events["kind"]
    hits = events[(kind == LASER_HIT) | (kind == PROJECTILE_HIT)]
    ahead = np.sign(now["score"][:, BLUE] - now["score"][:, RED])
    ahead = ahead[ahead != 0]
    launches = events[kind == MISSILE_LAUNCH]
    found = {
        "seconds": seconds,
        "winner": float(recording.header["result"]["winner"]),
        "lead_changes": float((ahead[1:] != ahead[:-1]).sum()),
        "contested_share": float((now["tonnage"][1:] > 0).all(1).mean()),
        "first_hit_s": float(hits["tick"].min() * TICK_S) if len(hits) else nan,
        "kills": float((kind == KILL).sum()),
        "friendly_kills": float((kind == FRIENDLY_KILL).sum()),
        "kills_per_minute": float((kind == KILL).sum() * 60 / seconds),
        "deaths_by_ground": float(((kind == DEATH) & (events["whom"] == NOBODY)).sum()),
        "knockdowns": float((kind == KNOCKDOWN).sum()),
        "legged": float((kind == LEGGED).sum()),
        "shutdowns": float((kind == SHUTDOWN).sum()),
        "shutdown_share": float((flag(mechs[1:], "shut") & alive).sum() / alive.sum()),
        "missiles": float(len(launches)),
        "missiles_by_paint": float(launches["amount"].sum()),
        "smokes": float((kind == SMOKE_LAUNCH).sum()),
        "smokes_before_retreat": float(_retreats(recording, frames, counts)),
        "voxels_destroyed": float((kind == VOXEL_DESTROYED).sum()),
        "idle_share": _idle_share(recording, frames, counts),
    }
    for number, weapon in enumerate(WEAPONS):
        found[f"kills_{weapon.name}"] = float(((kind == KILL) & (events["weapon"] == number)).sum())
        found[f"shots_{weapon.name}"] = float((hits["weapon"] == number).sum())
    return found | _fight_distances(frames, counts, kinds, teams)


def _frame_of_events(counts: Counts) -> npt.NDArray[np.int64]:
    """The frame of every event."""
    return np.repeat(np.arange(len(counts["events"])), counts["events"])


def _fight_distances(
    frames: Frames, counts: Counts, kinds: npt.NDArray[Any], teams: npt.NDArray[Any]
) -> dict[str, float]:
    """By class, the median distance from which it hit enemies."""
    events, at = frames["events"], _frame_of_events(counts)
    hit = (events["kind"] == LASER_HIT) | (events["kind"] == PROJECTILE_HIT)
    who, whom, at = events["who"][hit], events["whom"][hit], at[hit]
    hostile = teams[who] != teams[whom]
    who, whom, at = who[hostile], whom[hostile], at[hostile]
    a, b = frames["mechs"][at, who], frames["mechs"][at, whom]
    distance = np.sqrt((a["x"] - b["x"]) ** 2 + (a["y"] - b["y"]) ** 2 + (a["z"] - b["z"]) ** 2)
    found = {}
    for number, name in enumerate(CLASS_NAMES):
        own = distance[kinds[who] == number]
        found[f"fight_distance_{name}"] = float(np.median(own)) if len(own) else nan
    return found


def _idle_share(recording: Recording, frames: Frames, counts: Counts) -> float:
    """The fraction of mechs' time in which they stood about: on their feet, outside the zone, no step and no shot."""
    mechs, window = frames["mechs"], round(IDLE_S / recording.header["seconds_per_frame"])
    if recording.frames <= window:
        return 0.0
    shots = np.zeros(mechs.shape, np.int64)
    events = frames["events"]
    by_somebody = events["who"] >= 0
    np.add.at(shots, (_frame_of_events(counts)[by_somebody], events["who"][by_somebody]), 1)
    busy = np.cumsum(shots, axis=0)
    quiet = busy[window:] == busy[:-window]
    now, still = mechs[window:], np.ones(quiet.shape, bool)
    for axis in ("x", "y"):
        places = np.lib.stride_tricks.sliding_window_view(mechs[axis], window + 1, axis=0)
        still &= places.max(-1) - places.min(-1) < STEP
    standing = flag(now, "alive") & ~flag(now, "shut") & (now["fallen"] == 0)
    return float((standing & still & quiet & ~flag(now, "inside")).sum() / flag(mechs, "alive").sum())


def _retreats(recording: Recording, frames: Frames, counts: Counts) -> int:
    """Smoke after which whoever fired it was farther from whom it was aimed at, three seconds later."""
    events, at, mechs = frames["events"], _frame_of_events(counts), frames["mechs"]
    aimed = (events["kind"] == SMOKE_LAUNCH) & (events["whom"] >= 0)
    who, whom, at = events["who"][aimed], events["whom"][aimed], at[aimed]
    later = np.minimum(at + round(IDLE_S / recording.header["seconds_per_frame"]), recording.frames - 1)

    def apart(moment: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        a, b = mechs[moment, who], mechs[moment, whom]
        return np.asarray(np.hypot(a["x"] - b["x"], a["y"] - b["y"]))

    return int((apart(later) > apart(at) + STEP).sum())


# --- in words --------------------------------------------------------------------------------------------------------


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
