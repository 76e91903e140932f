"""The Lua client and the world around it: servers of every kind, resets, exits, errors, settings, people."""

import shutil

import numpy as np
import pytest

from protege.games.tempest.rules import ram
from tests.games.tempest.arcade.lua_client import (
    FOLDER,
    NEUTRAL,
    SEEDED,
    WELCOME,
    Client,
    Exit,
    header,
    in_play,
    numbered,
    reply,
    ticks,
)
from tests.games.tempest.task.scenes import A1, A2, A3, scene

# --- Connection -------------------------------------------------------------------------------------------------------


def test_a_client_introduces_itself_once_and_waits_for_the_answer():
    client = Client(environment={"PROTEGE_TOKEN": "open sesame", "PROTEGE_NAME": "cellar-3"}, welcome=None)
    ticks(client, in_play(), in_play())
    assert client.greetings == [b"\x50\x01\x00\x15" + b"\x0bopen sesame" + b"\x08cellar-3"]
    assert not client.frames
    client.send(WELCOME[:2])
    ticks(client, in_play())
    assert not client.frames
    client.send(WELCOME[2:])
    ticks(client, in_play())
    assert [header(frame)["frame"] for frame in client.frames] == [4], "the counter counts ticks, not packets"


def test_replies_may_come_byte_by_byte():
    client = Client(policy=lambda frame: reply(1, 0, 3))
    client.set(chunk=1)
    for _ in range(8):  # five for the greeting
        ticks(client, in_play())
    assert (client.buttons, client.spinner) == ((1, 0, 0), 3)
    assert not client.paused


def test_half_a_reply_is_kept_until_the_rest_comes():
    client = Client(policy=lambda frame: reply(1, 0, 3)[:2])
    ticks(client, in_play())
    assert client.paused, "a late reply stops the machine, so that no tick is lost"
    for _ in range(5):
        client.video_frame(after_s=1 / 60)
    assert client.paused and len(client.frames) == 1
    client.send(reply(1, 0, 3)[2:])
    client.video_frame(after_s=1 / 60)
    assert (client.buttons, client.spinner, client.paused) == ((1, 0, 0), 3, False)


@pytest.mark.parametrize(("throttled", "spin_s"), [(False, 0.0005), (True, 0.025)])
def test_a_reply_is_waited_for_in_a_loop_for_a_moment_only(throttled, spin_s):
    client = Client(policy=lambda frame: b"", throttled=throttled)
    client.set(clock_step=0.00001)
    started = client.get("now")
    ticks(client, in_play(), after_s=0)
    assert spin_s <= client.get("now") - started < spin_s + 0.0005


def test_a_held_machine_looks_often_and_its_speed_is_given_back():
    client = Client(policy=lambda frame: b"")
    ticks(client, in_play())
    assert (client.paused, client.throttle_rate) == (True, 16)
    client.send(NEUTRAL)
    client.video_frame()
    assert (client.paused, client.throttle_rate) == (False, 1)


def test_a_silent_server_is_given_up_and_never_written_to_again():
    client = Client(policy=lambda frame: b"")
    ticks(client, in_play())
    client.video_frame(after_s=3.4)
    assert client.paused and client.connected
    client.video_frame(after_s=0.2)
    assert (client.paused, client.connected, client.buttons, client.spinner) == (False, False, (0, 0, 0), 0)
    assert len(client.frames) == 1
    assert client.said[-1] == "protege: 127.0.0.1:9999: no reply for 3.5 s; trying again by itself"


def test_a_connection_that_breaks_on_writing_plays_on_with_neutral_controls():
    client = Client(policy=lambda frame: reply(1, 1, 9))
    ticks(client, in_play())
    client.reachable = False
    ticks(client, in_play())
    assert (client.connected, client.buttons, client.spinner) == (False, (0, 0, 0), 0)
    client.reachable = True
    ticks(client, *[in_play()] * 30)
    assert (client.connected, client.buttons, client.spinner) == (True, (1, 1, 0), 9)


def test_attempts_to_connect_back_off_to_half_a_minute_and_start_over_after_a_reply():
    client = Client()
    client.reachable = False
    attempts: list[float] = []
    while len(attempts) < 10:
        before = client.get("sockets")
        ticks(client, in_play(), after_s=0.05)
        if client.get("sockets") > before:
            attempts.append(client.get("now"))
    waits = np.diff(attempts)
    for wait, planned in zip(waits, [0.5, 1, 2, 4, 8, 16, 30, 30, 30]):
        assert 0.75 * planned - 0.01 <= wait <= 1.25 * planned + 0.1
    assert len(client.said) == 2, "said once, not at every attempt"
    client.reachable = True
    ticks(client, *[in_play()] * 2, after_s=40)
    client.reachable = False
    ticks(client, in_play())
    before = client.get("sockets")
    ticks(client, in_play(), after_s=0.7)
    assert client.get("sockets") == before + 1


def test_a_slow_attempt_to_connect_is_followed_by_a_long_rest():
    client = Client()
    client.reachable = False
    real = client.get("connect")

    def slow(name: bytes) -> bytes | None:
        client.set(now=client.get("now") + 20)
        return real(name)  # type: ignore[no-any-return]

    client.set(connect=slow)
    ticks(client, in_play())
    ticks(client, in_play(), after_s=190)
    assert client.get("sockets") == 1
    ticks(client, in_play(), after_s=20)
    assert client.get("sockets") == 2


@pytest.mark.parametrize(
    ("status", "says"),
    [(1, "set PROTEGE_TOKEN"), (2, "all the clients it takes"), (9, "refuses this client")],
)
def test_a_refusal_is_said_and_tried_again_later(status, says):
    client = Client(welcome=bytes([0x50, 1, status, 0, 0]))
    ticks(client, in_play())
    assert says in client.said[-1] and len(client.frames) == 0
    client.welcome = WELCOME
    ticks(client, *[in_play()] * 30)
    assert len(client.frames) > 10


def test_an_old_server_that_does_not_answer_gets_the_plain_greeting_next():
    client = Client(welcome=None, policy=lambda frame: reply(1, 0, 0))
    ticks(client, in_play())
    ticks(client, *[in_play()] * 2, after_s=5.1)
    assert client.greetings[1:] == [b"\0\0"]
    ticks(client, in_play())
    assert client.frames and client.buttons == (1, 0, 0)
    client.policy = lambda frame: b""
    ticks(client, in_play())
    client.video_frame(after_s=4)
    ticks(client, in_play(), after_s=1)
    assert client.greetings[2][:2] == b"\x50\x01", "after a failure the newer greeting has its turn again"


def test_what_answers_but_is_no_server_of_ours_is_left():
    client = Client(welcome=b"HTTP/1.1 400")
    ticks(client, in_play())
    assert "no server of Protege" in client.said[-1] and not client.connected


def test_the_machine_runs_in_real_time_while_nobody_plays_it():
    client = Client()
    client.reachable = False
    ticks(client, in_play())
    assert client.throttled
    client.reachable = True
    ticks(client, in_play(), after_s=2)
    assert not client.throttled


def test_one_packet_goes_out_per_tick_however_many_video_frames_it_lasts():
    client = Client()
    for number in range(1, 6):
        for _ in range(3):
            client.video_frame(numbered(in_play(), number))
    assert [header(frame)["frame"] for frame in client.frames] == [1, 2, 3, 4, 5]


def test_the_save_signal_comes_every_five_minutes():
    client = Client()
    saves = []
    for _ in range(65):
        ticks(client, in_play(), after_s=10)
        saves.append(header(client.frames[-1])["save"])
    assert [i for i, save in enumerate(saves) if save] == [29, 59]


# --- Leaving, resetting, failing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("notifiers", [False, True])
def test_at_exit_one_more_frame_asks_the_server_to_save(notifiers):
    client = Client(notifiers=notifiers)
    client.lua.execute(b"collectgarbage() collectgarbage()")  # a handle that nobody keeps would be gone now
    ticks(client, in_play(more="40=00"), in_play(more="40=50"))
    if notifiers:
        client.exit()
    else:  # older MAMEs crash after the callback, so the client ends them
        with pytest.raises(Exit, match="0"):
            client.exit()
    last = header(client.frames[-1])
    assert len(client.frames) == 3 and not client.connected
    assert (last["save"], last["frame"], last["objective"], last["subjective"], last["died"]) == (1, 2, 0, 0, 0)


def test_at_exit_a_tick_that_passed_meanwhile_is_paid():
    client = Client(notifiers=True)
    ticks(client, in_play(more="40=00"))
    client.set(ram=numbered(in_play(more="40=50"), client.get("ram")[ram.TICK] + 1))
    client.exit()
    last = header(client.frames[-1])
    assert (last["save"], last["frame"], last["objective"]) == (1, 2, 50.0)


@pytest.mark.parametrize("reachable", [True, False])
def test_leaving_without_a_willing_server_takes_half_a_second_at_most(reachable):
    client = Client(notifiers=True, policy=lambda frame: b"")
    client.reachable = reachable
    ticks(client, in_play())
    started = client.get("now")
    client.exit()
    assert client.get("now") - started < 0.6 and len(client.frames) <= 1 and not client.connected


@pytest.mark.parametrize("notifiers", [False, True])
def test_a_reset_of_the_machine_does_not_start_a_second_client(notifiers):
    client = Client(notifiers=notifiers)
    ticks(client, in_play())
    client.run_script()
    ticks(client, in_play(), in_play())
    assert len(client.frames) == 3 and client.get("sockets") == 1


def test_an_error_is_said_once_with_its_stage_and_the_game_goes_on():
    client = Client(policy=lambda frame: reply(1, 1, 9))
    ticks(client, in_play())
    client.set(broken=True)
    ticks(client, *[in_play()] * 60)
    assert (client.buttons, client.spinner, client.paused) == ((0, 0, 0), 0, False)
    errors = [line for line in client.said if "error" in line and "trying" not in line]
    assert len(errors) == 1 and "error in stage memory" in errors[0] and "the memory is broken" in errors[0]
    client.set(broken=False)
    ticks(client, *[in_play()] * 60, after_s=1)
    assert (client.buttons, client.spinner) == ((1, 1, 0), 9), "and is taken up again when it can be"
    assert header(client.frames[-1])["subjective"] == 2.5


def test_bytes_above_their_range_are_cut_and_counted():
    client = Client()
    state = client.part("state")
    record, values = state[b"new_record"](), client.lua.table()
    for memory, expected in ((in_play(), 0), (in_play(more="48=07 9F=63 108=FF"), 3)):
        state[b"read"](memory, record)
        assert state[b"observe"](record, None, values) == expected


def test_a_stop_file_makes_the_client_leave_with_a_last_frame(tmp_path):
    client = Client(environment={"PROTEGE_STOP_FILE": str(tmp_path / "stop")})
    ticks(client, in_play(), in_play())
    (tmp_path / "stop").touch()
    with pytest.raises(Exit, match="0"):
        client.video_frame(after_s=0.5)
    assert [header(frame)["save"] for frame in client.frames] == [0, 0, 1] and not client.connected


def test_the_scripts_leave_one_global_behind():
    client = Client(environment={"PROTEGE_OVERLAY": "yes"})
    ticks(client, A1, A2, A3, in_play())
    assert list(client.get("globals").values()) == [b"protege_client"]


def test_another_machine_is_refused():
    with pytest.raises(Exit, match="2"):
        Client(system="pacman")


# --- Settings ---------------------------------------------------------------------------------------------------------


def test_settings_come_from_a_file_beside_the_scripts_and_the_environment_wins(tmp_path):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "settings.txt").write_bytes(b"# where to\r\nserver = 192.168.0.7\r\n\r\n  Token=a#b \r\nname = x\r\n")
    client = Client(environment={"PROTEGE_NAME": "y"}, folder=tmp_path)
    ticks(client, in_play())
    assert client.address == "192.168.0.7:9999"
    assert client.greetings == [b"\x50\x01\x00\x06\x03a#b\x01y"]


def test_without_settings_the_server_is_on_this_machine():
    client = Client(environment={"PROTEGE_SERVER": ""})
    ticks(client, in_play())
    assert client.address == "127.0.0.1:9999"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVER", "10.0.0.1:99999"),
        ("SERVER", "a b:1"),
        ("START_LEVEL", "0"),
        ("START_LEVEL", "82"),
        ("START_LEVEL", "2.5"),
        ("OVERLAY", "perhaps"),
        ("TOKEN", "x" * 129),
        ("NAME", "x" * 65),
        ("REPORT_S", "-1"),
        ("SEED", "many"),
    ],
)
def test_a_setting_that_makes_no_sense_ends_the_emulator_with_one_line(name, value):
    with pytest.raises(Exit, match="2") as ended:
        Client(environment={f"PROTEGE_{name}": value})
    (line,) = ended.value.said
    assert line.startswith(f"protege: PROTEGE_{name} must be ") and line.endswith(f'; found "{value}"')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("server 10.0.0.1", "line 1 of settings.txt is not name = value"),
        ("\nport = 3", "settings.txt has an unknown setting: port"),
        ("overlay = maybe", 'overlay in settings.txt must be yes or no; found "maybe"'),
    ],
)
def test_a_settings_file_that_makes_no_sense_is_said(tmp_path, text, says):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "settings.txt").write_text(text)
    with pytest.raises(Exit, match="2") as ended:
        Client(folder=tmp_path)
    assert ended.value.said == [f"protege: {says}"]


# --- What a person sees -----------------------------------------------------------------------------------------------


def drawn(client: Client) -> list[str]:
    return [line.decode() for line in client.get("drawn").values()]


def test_the_overlay_is_drawn_in_every_video_frame_when_switched_on():
    client = Client(environment=SEEDED | {"PROTEGE_OVERLAY": "1"}, policy=lambda frame: reply(1, 0, -9))
    busy = bytes(scene(5, (ram.TANKER, 7, 0x90), shots=((4, 0x30),), more="05=C0 40=50 9F=02 48=09"))
    ticks(client, in_play(), busy)
    shown = drawn(client)
    assert shown == [
        "server 127.0.0.1:9999, frame 2",
        "state $04 mode $C0  level 3 closed",
        "score 000050  objective +50  subjective +1.50",
        "lane 5  fire 1 zap 0 spinner -9",
        "teacher: lane 6 fire",
        "0 tanker   lane  7 (+2.0)  depth $90",
        "shot lane  4 (-1)  depth $30",
        "1 bytes cut to their range, 1 so far",
    ]
    client.video_frame()
    assert drawn(client) == shown


def test_the_overlay_is_off_by_default():
    client = Client()
    ticks(client, in_play())
    assert drawn(client) == []


def test_status_lines_come_on_request():
    client = Client(environment={"PROTEGE_REPORT_S": "2"})
    ticks(client, *[in_play()] * 4, after_s=1)
    client.reachable = False
    ticks(client, *[in_play()] * 3, after_s=1)
    lines = [line.removeprefix("protege: ") for line in client.said if " state " in line]
    seen = ((0, "waiting"), (2, "connected"), (4, "connected"), (6, "waiting"))  # before the first, 3rd, 5th, 7th tick
    assert lines == [f"frames {frames} state {word}" for frames, word in seen]


def test_a_client_whose_status_nobody_reads_leaves_with_a_last_frame():
    client = Client(environment={"PROTEGE_REPORT_S": "2"})
    ticks(client, in_play(), in_play())
    client.set(deaf=True)
    with pytest.raises(Exit, match="0"):
        client.video_frame(after_s=2)
    assert [header(frame)["save"] for frame in client.frames] == [0, 0, 1] and not client.connected
