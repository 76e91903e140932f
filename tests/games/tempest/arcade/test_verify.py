"""`protege verify-rom`: a trace of the simulator's own agrees, whatever is changed is found, and real MAME records."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protege.cli import __main__ as cli
from protege.games.tempest.arcade.demo.cabinet import demo_program, write_rom_set
from protege.games.tempest.arcade.fleet import SCRIPTS
from protege.games.tempest.arcade.trace import HEADER, MAGIC, Trace, TraceError
from protege.games.tempest.arcade.verify import CONTROLS, NAMES, NOISE, Difference, PlainRules, Report, verify
from protege.games.tempest.rules import levels, nymphs, player, ram, sim, states
from tests.games.tempest.arcade.mame import PROBE, Mame, images
from tests.games.tempest.arcade.traces import simulated, write_trace

TICKS = simulated(400, level=9, seed=3)


def first(report: Report) -> Difference:
    assert report.first and report.agreed < report.ticks
    return report.first[0]


@pytest.mark.parametrize("level", [1, 5, 17, 40, 66, 99])
def test_a_trace_made_by_the_simulator_agrees_in_every_byte(tmp_path, level):
    trace = Trace(write_trace(tmp_path / "trace", simulated(300, level, seed=level)))
    report = verify(trace, every_byte=True)
    assert (report.agreed, report.ticks, report.first) == (300, 300, []) and trace.whole
    assert report.play_agreed == report.play_ticks > 200
    assert trace.machine == "simulator" and report.surplus_reads == 0


def test_the_map_names_every_byte_that_a_rule_writes():
    rules, written = PlainRules(), set[int]()
    for level in (1, 20, 66):
        for tick in simulated(700, level, seed=level + 1):
            written |= rules.tick(tick.before, tick.reads).writers.keys()
    strays = {ram.STRAY_NYMPH_TIMER}
    particles = range(ram.PARTICLES, ram.PARTICLES + 12 * ram.PARTICLE_STRIDE)
    assert {at for at in written if at < ram.RAM_BYTES and at not in particles} <= NAMES.keys() | strays
    assert len(written & NAMES.keys()) > 300


@settings(max_examples=150)
@given(st.integers(1, len(TICKS) - 2), st.integers(0, ram.RAM_BYTES - 1), st.integers(1, 255), st.booleans())
def test_one_byte_changed_anywhere_in_memory_is_found(at, address, change, after):
    after = after or address in CONTROLS  # controls change between ticks by themselves
    image = bytearray(TICKS[at].after if after else TICKS[at].before)
    image[address] ^= change
    changed = replace(TICKS[at], **{"after" if after else "before": bytes(image)})
    report = verify([TICKS[at - 1], changed], every_byte=True)
    found = {difference.address: difference for difference in reversed(report.first)}
    assert report.agreed == 1 and report.first[0].tick == 2
    assert found[address].machine == image[address] and found[address].name == NAMES.get(address, "unnamed")


def test_random_bytes_that_differ_or_are_missing_are_found():
    at = next(i for i, tick in enumerate(TICKS) if len(tick.reads) == 1 and tick.reads[0] < 0x80)
    missing = first(verify([replace(TICKS[at], reads=())], every_byte=True))
    assert (missing.address, missing.machine, missing.simulator) == (NOISE, 0, 1) and "rule " in missing.rule
    more = verify([replace(TICKS[at], reads=(*TICKS[at].reads, 7))], every_byte=True)
    assert more.agreed == 1 and more.surplus_reads == 1
    at = next(i for i, tick in enumerate(TICKS) if len(tick.reads) > 1)
    checked = replace(TICKS[at], reads=(255, 255, *TICKS[at].reads))  # reads of a check come before those of the rules
    assert verify([checked], every_byte=True).agreed == 1


def test_a_changed_rule_is_found_and_named(monkeypatch):
    ticks = simulated(600, level=9, seed=3)
    slower = states._BYTES.copy()
    slower[..., list(levels.LEVEL_ADDRESSES).index(ram.SHOT_HOLDOFF)] += 1
    changes: list[tuple[ModuleType, str, object, str]] = [
        (player, "_POINTS", player._POINTS + 10, "rule player.add_points"),
        (nymphs, "lane_bit", lambda lane: 0, "rule nymphs.move_nymphs_singly"),
        (states, "_BYTES", slower, "rule states.set_parameters"),
        (sim, "run_blasts", lambda row: None, "rule motion.start_blast"),
    ]
    for module, name, value, rule in changes:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            assert first(verify(ticks, every_byte=True)).rule.startswith(rule), name


# --- files -----------------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(st.data())
def test_a_damaged_file_is_refused_in_one_line_or_read_as_far_as_it_goes(tmp_path_factory, data):
    path = write_trace(tmp_path_factory.mktemp("traces") / "trace", TICKS[:5])
    made = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del made[data.draw(st.integers(0, len(made) - 1)) :]
    else:
        made[data.draw(st.integers(0, len(made) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(made)
    try:
        ticks = list(Trace(path))
    except TraceError as error:
        assert "trace" in str(error) and "\n" not in str(error)
    else:
        assert len(ticks) <= 5 and all(len(tick.before) == len(tick.after) == ram.RAM_BYTES for tick in ticks)


def test_a_recording_that_was_cut_off_counts_as_far_as_it_goes(tmp_path, capsys):
    path = write_trace(tmp_path / "trace", TICKS[:50])
    path.write_bytes(path.read_bytes()[:-20])
    assert cli.main(["verify-rom", "--trace", str(path), "--json"]) == 0
    said = capsys.readouterr().out
    figures = json.loads(said.splitlines()[-1])
    assert figures["ticks"] == figures["agreed"] == 49 and figures["whole"] is False and "cut off" in said


def test_what_is_no_trace_is_said_in_one_line(tmp_path, capsys):
    (tmp_path / "text").write_text("this is no trace at all")
    assert cli.main(["verify-rom", "--trace", str(tmp_path / "text")]) == 2
    assert "is no trace" in capsys.readouterr().err
    (tmp_path / "later").write_bytes(HEADER.pack(MAGIC, 9, 0))
    assert cli.main(["verify-rom", "--trace", str(tmp_path / "later")]) == 2
    assert "version 9" in capsys.readouterr().err
    assert cli.main(["verify-rom", "--trace", str(tmp_path / "nothing")]) == 2
    assert "cannot be read" in capsys.readouterr().err


# --- real MAME -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def roms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roms")
    write_rom_set(folder)
    return folder


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_mame_records_what_its_program_does(roms, tmp_path):
    at = demo_program().symbols
    told = {"PROTEGE_TRACE": tmp_path / "trace", "PROTEGE_TRACE_TICKS": 300, "PROTEGE_SEED": 5}
    watched = {"PROBE_DUMP": tmp_path / "ram", "PROBE_CLIENT": SCRIPTS / "trace.lua", "PROTEGE_SERVER": "127.0.0.1:1"}
    with Mame(roms, tmp_path / "mame", PROBE, **told, **watched) as mame:
        assert mame.wait() == 0, mame.said[-5:]
    trace = Trace(tmp_path / "trace")
    ticks = list(trace)
    assert trace.whole and len(ticks) == 300 and trace.machine.startswith("MAME 0.")
    assert {tick.before[ram.GAME_STATE] for tick in ticks} >= {ram.LEVEL_SELECT, ram.DELAY, ram.PLAYING}
    seen = {int.from_bytes(image[at["TICKS"] : at["TICKS"] + 2], "little"): image for image in images(tmp_path / "ram")}
    # Interrupts, picture and stack go on after the tick.
    busy = {at[name] for name in ("INTERRUPTS", "SINCE_TICK", "DIAL_LAST", "BOTH", "COINS_LAST", "DRAWS", "TICKS")}
    busy |= {*CONTROLS, *range(at["LIST"], at["LIST_PAGE"] + 1), at["TICKS"] + 1, ram.CREDITS, *range(0x170, 0x200)}
    quiet = [address for address in range(ram.RAM_BYTES) if address not in busy]
    for number, tick in enumerate(ticks, 1):
        image = seen[number]
        assert [tick.after[i] for i in quiet] == [image[i] for i in quiet], f"tick {number}: as read a moment later"
        assert tick.before[ram.TICK] == (number - 1) % 256 and tick.after[ram.TICK] == number % 256
        drawn = (tick.after[at["DRAWS"]] - tick.before[at["DRAWS"]]) % 256
        assert len(tick.reads) == drawn, "every read of the noise, and no other"
        assert not drawn or tick.reads[-1] == tick.after[at["RANDOM"]]
    assert sum(len(tick.reads) for tick in ticks) > 10
    assert len({byte for tick in ticks for byte in tick.reads}) > 5


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_a_player_is_recorded_and_another_program_is_told_from_tempest(roms, tmp_path, capsys):
    words = [
        "verify-rom",
        "--rom-path",
        str(roms),
        "--play",
        "random",
        "--ticks",
        "150",
        "--out",
        str(tmp_path / "trace"),
    ]
    assert cli.main([*words, "--json"]) == 1
    said = capsys.readouterr().out
    figures = json.loads(said.splitlines()[-1])
    assert figures["ticks"] == 150 and figures["play_ticks"] > 20 and figures["whole"]
    assert "The first that does not:\n  tick 1, state $00: $0004 COUNTDOWN is $00 on the machine, $10 in the" in said
    assert figures["first_rule"] == "rule states.new_game"
    assert cli.main(["verify-rom", "--trace", str(tmp_path / "trace"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == figures
    assert any(tick.before[ram.BUTTONS] & ram.FIRE_BUTTON for tick in Trace(tmp_path / "trace"))


def test_a_tick_is_small_in_the_file(tmp_path):
    size = write_trace(tmp_path / "trace", TICKS).stat().st_size
    assert size / len(TICKS) < 300
