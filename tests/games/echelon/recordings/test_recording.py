"""Recorded battles: exactly what was played, small, and refused with one clear line when anything is wrong."""

import json
import re
import struct
import subprocess
import sys
import zlib
from typing import Any

import numpy as np
import pytest

from proofs.battle_figures import figures
from protege.games.echelon.agents.match import Match, Setting, play
from protege.games.echelon.recordings import recording as format_
from protege.games.echelon.recordings.battle_report import clock, flag, report_lines
from protege.games.echelon.recordings.recording import (
    FIELDS,
    FLAGS,
    PREFIX,
    BadRecording,
    Recorder,
    Recording,
    write_recording,
)
from protege.games.echelon.rules.events import FRIENDLY_KILL, KILL, LASER_HIT, PROJECTILE_HIT
from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.task.teacher import Teacher
from protege.games.echelon.world.maps import generate, map_hash
from protege.games.echelon.world.mechs import BLUE, MEDIUM, RED, SOLID, find_roster
from tests.games.echelon.rules.fields import act, field, placed

ABOUT = {"players": ("hard", "medium"), "seed": 1, "swapped": False}


@pytest.fixture(scope="module")
def fight() -> dict[str, Any]:
    """A battle of 10 against 10 and its recording, with copies of what was live at every frame."""
    battles = Battles(generate([3]), find_roster("10v10"))
    recorder, live = Recorder(battles, 0, ABOUT), []
    sides = battles.members.team[None] == BLUE, battles.members.team[None] == RED
    players, actions = (Teacher("hard"), Teacher("medium")), battles.no_actions()
    while True:
        live.append((battles.records[0].copy(), battles.world.material[0].copy()))
        if battles.over[0]:
            break
        for player, side in zip(players, sides):
            player.act(battles, side, actions)
        battles.step(actions)
        recorder.note()
    return {"battles": battles, "bytes": recorder.to_bytes(), "live": live}


def test_every_frame_is_what_was_live(fight):
    recording = Recording(fight["bytes"])
    assert recording.frames == len(fight["live"]) > 100
    for frame, (record, _) in zip(recording, fight["live"]):
        mechs = record["mechs"][:20]
        for name, kind, *_ in FIELDS["mechs"]:
            if name != "flags":
                assert (frame.mechs[name] == mechs[name].astype(kind)).all(), name
        for name in FLAGS:
            assert (flag(frame.mechs, name) == (mechs[name] != 0)).all(), name
        for name, kind, *_ in FIELDS["now"]:
            assert (frame.now[name] == record[name].astype(kind)).all(), name
        for group, count in (("shots", "shot_count"), ("clouds", "cloud_count"), ("events", "event_count")):
            rows, found = record[group][: record[count]], getattr(frame, group)
            assert len(rows) == len(found)
            for name, kind in FIELDS[group]:
                assert (found[name] == rows[name].astype(kind)).all(), (group, name)


def test_the_map_is_right_in_every_frame_from_either_direction(fight):
    recording = Recording(fight["bytes"])
    grid = recording.materials(0)
    for number in range(1, recording.frames):
        changes = recording.frame(number).changes
        assert (grid.flat[changes["cell"]] == changes["before"]).all()
        grid.flat[changes["cell"]] = changes["after"]
        assert (grid == fight["live"][number][1]).all()
    for number in range(recording.frames - 1, 0, -1):
        changes = recording.frame(number).changes
        grid.flat[changes["cell"]] = changes["before"]
        assert (grid == fight["live"][number - 1][1]).all()
    assert (grid == recording.materials(0)).all()
    middle = recording.frames // 2
    assert (recording.materials(middle) == fight["live"][middle][1]).all()
    assert sum(len(frame.changes) for frame in recording) > 50, "nothing was destroyed"


def test_frames_can_be_asked_for_in_any_order(fight):
    recording = Recording(fight["bytes"])
    for number in (recording.frames - 1, 0, 41, 40, 39, recording.frames // 2):
        assert recording.frame(number).now["decision"] == number
    with pytest.raises(IndexError):
        recording.frame(recording.frames)
    frames, counts = recording.everything()
    assert (frames["now"]["decision"] == np.arange(recording.frames)).all()
    assert counts["events"].sum() == len(frames["events"])


def test_the_whole_length_of_ten_against_ten_takes_less_than_three_megabytes():
    rules = Setting(length=500).rules
    endless = rules.__class__(**{**vars(rules), "score_ends": False})
    found: dict[int, bytes] = {}
    results = play(
        Teacher("easy"), Teacher("easy"), [Match(7), Match(8)], Setting(rules=endless), recorded=found.__setitem__
    )
    longest = max(range(2), key=lambda n: results[n].decisions)
    assert len(found[longest]) * 500 / results[longest].decisions < 3_000_000
    assert results[longest].decisions > 250


def test_the_header_tells_what_a_viewer_needs():
    found: dict[int, bytes] = {}
    play(Teacher("hard"), Teacher("medium"), [Match(5, swapped=True)], Setting("5v5", (40, 40), 20),
         names=("hard", "medium"), recorded=found.__setitem__)  # fmt: skip
    header = Recording(found[0]).header
    assert header["players"] == ["hard", "medium"] and header["seed"] == 5 and header["swapped"]
    assert [mech["team"] for mech in header["mechs"]] == [BLUE] * 5 + [RED] * 5
    assert header["size"] == [40, 40, 20] and header["length"] == 20 and header["frames"] == 21
    world = generate([header["recipe"]["seed"]], (40, 40), "5v5")
    assert map_hash(world, 0) == header["recipe"]["hashes"]["map"]
    assert (Recording(found[0]).materials(0) == world.material[0]).all()


def test_channels_are_kept_for_every_mech_and_decision_and_cost_nothing_where_there_are_none():
    battles = field(placed(BLUE, MEDIUM, 10, 20), placed(RED, MEDIUM, 30, 20, yaw=3.1), length=100)
    channels = {"value": ("value",), "reward": ("damage", "kill")}
    recorder, plain = Recorder(battles, 0, ABOUT, channels), Recorder(battles, 0, ABOUT)
    for number in range(50):  # more than a block
        act(battles)
        plain.note()
        if number == 3:
            recorder.note(value=[1.5, np.nan])
        else:
            recorder.note(value=[[number], [-number]], reward=[[0.5, number], [0.0, 1.0]])
    recording = Recording(recorder.to_bytes())
    assert recording.channels == {"value": ["value"], "reward": ["damage", "kill"]}
    assert np.isnan(recording.frame(0).channels["reward"]).all(), "no decision has led to the start"
    assert recording.frame(1).channels["reward"].tolist() == [[0.5, 0.0], [0.0, 1.0]]
    assert recording.frame(4).channels["value"][0].tolist() == [1.5]
    assert np.isnan(recording.frame(4).channels["reward"]).all(), "what was not told is not known"
    assert recording.frame(50).channels["value"].tolist() == [[49.0], [-49.0]]
    frames, _ = recording.everything()
    assert frames["reward"].shape == (51, 2, 2) and frames["value"][50, 1, 0] == -49.0
    bare = Recording(plain.to_bytes())
    assert bare.channels == {} and bare.frame(9).channels == {}
    assert (bare.frame(9).mechs == recording.frame(9).mechs).all()
    with pytest.raises(ValueError, match="channels .*, not .*anger"):
        recorder.note(anger=[1.0, 2.0])


# --- what is wrong with a file ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> bytes:
    battles = field(placed(BLUE, MEDIUM, 10, 20), placed(RED, MEDIUM, 18, 20, yaw=3.1), length=300)
    recorder = Recorder(battles, 0, ABOUT)
    for _ in range(50):
        act(battles, {0: {"special": True, "turn": 0.1}})
        recorder.note()
    return recorder.to_bytes()


def test_a_file_cut_off_anywhere_is_refused(small):
    assert Recording(small).frames == 51
    for size in [*range(200), *range(200, len(small), 37), len(small) - 1]:
        with pytest.raises(BadRecording, match="is cut off|is no Echelon recording") as refused:
            Recording(small[:size], "fight.rec")
        assert "\n" not in str(refused.value)
    with pytest.raises(BadRecording, match="fight.rec is too long"):
        Recording(small + b"x", "fight.rec")


def test_a_file_with_any_byte_changed_is_refused_or_reads_the_same(small):
    whole = [frame.mechs.tobytes() for frame in Recording(small)]
    rng = np.random.default_rng(3)
    for at in [*range(PREFIX.size), *rng.integers(PREFIX.size, len(small), 300)]:
        changed = bytearray(small)
        changed[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(BadRecording) as refused:
            recording = Recording(bytes(changed))
            recording.materials(0)
            assert [frame.mechs.tobytes() for frame in recording] != whole
        assert "\n" not in str(refused.value)


def test_files_of_other_kinds_and_versions_are_refused_by_name(small, tmp_path):
    for contents, message in (
        (b"PNG" + bytes(100), "fight.rec is no Echelon recording: make one with protege match"),
        (b"", "fight.rec is no Echelon recording"),
        (
            small[:8] + struct.pack("<I", 99) + small[12:],
            "fight.rec is a recording of version 99, this is version 1: record it again",
        ),
        (with_header(small, schema="0" * 64), "fight.rec has other fields than this version's"),
        (with_header(small, blocks=[{"first": 0, "frames": 0, "bytes": 1, "unpacked": 1 << 40, "crc": 0}]), "damaged"),
    ):
        path = tmp_path / "fight.rec"
        path.write_bytes(contents)
        with pytest.raises(BadRecording, match=message):
            Recording.open(path)
    with pytest.raises(BadRecording, match="cannot read .*nowhere.rec: No such file"):
        Recording.open(tmp_path / "nowhere.rec")
    with pytest.raises(BadRecording, match="cannot write .*: No such file"):
        write_recording(tmp_path / "no folder" / "a.rec", small)


def with_header(contents: bytes, **changes: Any) -> bytes:
    """The same file with something else in its header."""
    magic, version, size, _, body = PREFIX.unpack_from(contents)
    header = json.loads(contents[PREFIX.size : PREFIX.size + size]) | changes
    text = json.dumps(header).encode()
    return PREFIX.pack(magic, version, len(text), zlib.crc32(text), body) + text + contents[PREFIX.size + size :]


def test_a_file_that_would_unpack_to_more_than_it_says_is_refused(small):
    """A block of zeros packs a thousand to one: it is unpacked no further than announced."""
    header = Recording(small).header
    bomb = zlib.compress(bytes(10_000_000))
    blocks = [dict(block) for block in header["blocks"]]
    blocks[0] |= {"bytes": len(bomb), "crc": zlib.crc32(bomb)}
    _, _, size, _, body = PREFIX.unpack_from(small)
    rest = small[PREFIX.size + size + header["blocks"][0]["bytes"] :]
    text = json.dumps(header | {"blocks": blocks}).encode()
    made = PREFIX.pack(format_.MAGIC, 1, len(text), zlib.crc32(text), len(bomb) + len(rest)) + text + bomb + rest
    with pytest.raises(BadRecording, match="block 0"):
        Recording(made).materials(0)


@pytest.mark.slow
def test_a_recorder_killed_while_it_writes_leaves_the_old_file_or_none(tmp_path):
    path = tmp_path / "fight.rec"
    script = f"""
import os, pathlib
from protege.games.echelon.recordings.recording import write_recording
real = pathlib.Path.write_bytes
def half(self, contents):
    real(self, contents[: len(contents) // 2])
    os._exit(9)
pathlib.Path.write_bytes = half
write_recording(pathlib.Path({str(path)!r}), bytes(1000))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert ended.returncode == 9, ended.stderr
    assert not path.exists()


# --- figures and account ---------------------------------------------------------------------------------------------


def test_figures_of_a_fight_counted_by_hand(fight):
    found, live = figures(Recording(fight["bytes"])), fight["live"]
    last = live[-1][0]
    tally = last["mechs"]["tally"][:20].sum(0)
    weapons = "laser flamer missile gauss autocannon".split()
    assert found["kills"] == tally[KILL] == sum(found[f"kills_{weapon}"] for weapon in weapons)
    assert found["seconds"] == 0.25 * (len(live) - 1)
    contested = np.mean([(record["tonnage"] > 0).all() for record, _ in live[1:]])
    assert found["contested_share"] == pytest.approx(contested)
    hits = [
        event["tick"]
        for record, _ in live
        for event in record["events"][: record["event_count"]]
        if event["kind"] in (LASER_HIT, PROJECTILE_HIT)
    ]
    assert found["first_hit_s"] == pytest.approx(min(hits) * 0.05)
    assert found["winner"] == last["winner"]
    assert 0 <= found["idle_share"] < 0.2 and 0 <= found["shutdown_share"] < 0.2
    assert 1 < found["fight_distance_medium"] < 13


def test_a_mech_that_stands_about_is_idle_and_one_that_walks_or_holds_the_zone_is_not():
    battles = field(placed(BLUE, MEDIUM, 5, 5), placed(BLUE, MEDIUM, 20, 20), placed(RED, MEDIUM, 5, 35), length=100)
    recorder = Recorder(battles, 0, ABOUT)
    for _ in range(40):
        act(battles, {2: {"forward": 1.0}})
        recorder.note()
    # Of 3 mechs x 41 frames, the first stands idle in those 29 that end 3 s without a step; the third walks into the
    # far wall of the map after 35 / 5.39 = 6.3 s, frame 26, and has stood there for 3 s from frame 38 on.
    share = figures(Recording(recorder.to_bytes()))["idle_share"]
    assert share == pytest.approx((29 + 3) / (3 * 41), abs=0.01)


def test_an_account_tells_who_when_and_what():
    def wall(material):
        material[0:3, 10, 10] = SOLID

    battles = field(placed(BLUE, MEDIUM, 16, 20), placed(RED, MEDIUM, 22, 20, yaw=3.1), length=200, build=wall)
    battles.mechs["hp"][0, 1] = 20.0
    recorder = Recorder(battles, 0, ABOUT)
    while not battles.over[0]:
        act(battles, {0: {"primary": True}})
        recorder.note()
    lines = list(report_lines(Recording(recorder.to_bytes())))
    assert lines[0] == "hard (blue) against medium (red): made by hand, map seed 1, 40 x 40 columns"
    assert any("first hit: blue medium 1 on red medium 1 (laser)" in line for line in lines)
    assert any("blue medium 1 kills red medium 1 (laser)" in line for line in lines)
    assert any("blue (hard) wins by elimination: blue 0." in line and "1 against 0 alive" in line for line in lines)
    assert lines[-2].split() == ["blue", "medium", "1", "1", "20", "150"]
    assert clock(75.25) in ("1:15.2", "1:15.3")


def test_an_account_of_a_real_fight_is_short_enough_to_read(fight):
    lines = list(report_lines(Recording(fight["bytes"])))
    assert 30 < len(lines) < 300
    assert max(map(len, lines)) < 140
    kinds = Recording(fight["bytes"]).everything()[0]["events"]["kind"]
    assert sum(bool(re.search(r"\d kills ", line)) for line in lines) == np.isin(kinds, (KILL, FRIENDLY_KILL)).sum()
