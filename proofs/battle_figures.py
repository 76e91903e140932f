"""What recorded battles were like, in figures: how long, how close, who fought from where, who stood about."""

from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.recordings.battle_report import flag
from protege.games.echelon.recordings.recording import Counts, Frames, Recording
from protege.games.echelon.rules.events import (
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
)
from protege.games.echelon.world.mechs import BLUE, CLASS_NAMES, NOBODY, RED, TICK_S, WEAPONS

IDLE_S: Final = 3.0  # without a step or a shot, outside the zone: idle or stuck
STEP: Final = 1.0  # voxels


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
