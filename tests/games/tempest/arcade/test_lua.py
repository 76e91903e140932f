"""The Lua client sends what the Python path computes from the same memory, and works the controls in every state."""

import numpy as np
import pytest

from protege.games.tempest.rules import levels, ram
from protege.games.tempest.rules.sim import Cabinet, power_on
from protege.games.tempest.task import observation, teacher
from tests.games.tempest.arcade.lua_client import (
    FRAME,
    NEUTRAL,
    SEED,
    SEEDED,
    VERSIONS,
    Client,
    expected_frame,
    header,
    in_play,
    numbered,
    play,
    reply,
    ticks,
)
from tests.games.tempest.task.scenes import (
    A1,
    A2,
    A2_BEFORE,
    A2_DYING,
    A3,
    ABSENT,
    image,
    played_images,
    random_images,
    row_of,
    scene,
)

EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)


# --- The same numbers -------------------------------------------------------------------------------------------------


@EVERY_VERSION
def test_the_values_have_the_names_of_the_python_side_in_its_order(version):
    names = Client(version).part("state")[b"NAMES"]
    assert [name.decode() for name in names.values()] == list(observation.NAMES)


@EVERY_VERSION
def test_vector_a1_is_sent_as_documented(version):
    client = Client(version)
    client.video_frame(bytes(A1))
    (frame,) = client.frames
    sent = header(frame)
    del sent["advised_fire"]  # a random draw
    assert sent == dict.fromkeys(sent, 0) | {"length": 819, "count": 195, "frame": 1}
    expected = [0.0] * 195
    for index in (6, 11, 178, 179, 180):
        expected[index] = 1.0
    for index in ABSENT:
        expected[index] = -1.0
    assert list(FRAME.unpack(frame)[-195:]) == expected
    assert len(frame) == 821


@EVERY_VERSION
def test_vectors_a2_and_a3_are_sent_as_documented(version):
    client = Client(version, SEEDED)
    ticks(client, A2_BEFORE, A2, A2_DYING, A3, A3)
    _, alive, dying, _, zoom = (header(frame) for frame in client.frames)
    assert (alive["subjective"], alive["objective"], alive["died"], alive["score"]) == (1.5, 50.0, 0, 123450)
    assert (alive["state"], alive["mode"], alive["lane"], alive["open"], alive["level"]) == (4, 192, 15, 1, 20)
    assert (dying["subjective"], dying["objective"], dying["died"]) == (0.0, -1000.0, 1)
    assert (zoom["subjective"], zoom["objective"], zoom["target"], zoom["open"]) == (2.5, 0.0, 6, 0)


def assert_same_on(client: Client, memories: list[bytes]) -> None:
    """Every image is a tick, compared with the one before it; frames must agree to the last byte."""
    before = None
    for memory in memories:
        number = len(client.frames) + 1
        now = numbered(memory, number)
        client.video_frame(now)
        row = row_of(now.ljust(ram.RAM_BYTES, b"\0"), before)
        assert client.frames[-1] == expected_frame(row, number, SEED), f"frame {number}"
        before = now.ljust(ram.RAM_BYTES, b"\0")


@EVERY_VERSION
def test_lua_and_python_send_the_same_bytes_for_random_images(version):
    pairs = random_images(seed=61, count=2000)
    client = Client(version, SEEDED)
    assert_same_on(client, [memory for pair in pairs for memory in reversed(pair)])
    assert len(client.frames) == 4000


@EVERY_VERSION
def test_lua_and_python_send_the_same_bytes_for_pure_noise(version):
    dice = np.random.default_rng(62)
    client = Client(version, SEEDED)
    assert_same_on(client, [dice.bytes(ram.RAM_BYTES) for _ in range(2000)])
    values = np.array([FRAME.unpack(frame)[-195:] for frame in client.frames])
    assert np.abs(values).max() == 1  # and so no value is infinite or no number


@EVERY_VERSION
@pytest.mark.parametrize("level", [1, 17, 43, 62, 99])
def test_lua_and_python_send_the_same_bytes_in_real_games(version, level):
    client = Client(version, SEEDED)
    deaths = points = 0
    for number, (now, _, row) in enumerate(played_images(level, ticks=1200), start=1):
        client.video_frame(now)
        sent, wanted = client.frames[-1], expected_frame(row, number, SEED)
        if number > 1:  # the client has seen nothing before its first tick, the row has
            assert sent == wanted, f"frame {number}"
        deaths += header(sent)["died"]
        points += header(sent)["objective"] > 0
    assert points and (deaths or level == 1)


@EVERY_VERSION
def test_lua_and_python_agree_at_the_edges_of_the_rules(version):
    scores = ["40=00", "40=99 41=09", "40=99 41=19", "40=00", "40=AF", "40=99 41=99 42=99", "40=50"]
    scenes = [scene(5, more=score) for score in scores]
    scenes += [scene(5, (ram.PULSAR, 5, 0xF0), more=f"148={phase:02X}") for phase in (0, 1, 127, 128)]
    for depth in (0x0F, 0x10, 0x11, 0x40, 0x41, 0x60, 0x61, 0x80, 0x81):
        for kind in range(5):
            scenes += [
                scene(5, (kind, lane, depth), on_open=on_open) for lane in (5, 6, 8) for on_open in (True, False)
            ]
        scenes += [scene(0, (ram.TANKER, 1, 0x90), shots=((2, depth),)), scene(3, *[(ram.TANKER, 9, depth)] * 3)]
    for uses in range(3):
        scenes.append(scene(3, *[(ram.SPIKER, 9, 0x60)] * 3, more=f"3AA={uses:02X}"))
    client = Client(version, SEEDED)
    assert_same_on(client, [bytes(memory) for memory in scenes])
    assert [header(frame)["objective"] for frame in client.frames[:7]] == [0, 999, 0, 0, 99, 0, 0]
    assert [header(frame)["target"] for frame in client.frames[7:11]] == [5, 4, 4, 5]


@EVERY_VERSION
def test_lua_and_python_draw_the_same_random_numbers(version):
    row = row_of(A1)
    row[ram.PLAYER_STREAM : ram.PLAYER_STREAM + 8] = np.frombuffer((2**64 - 3).to_bytes(8, "little"), np.uint8)
    chance = Client(version).part("logic")[b"chance"]
    for frames in (0, 1, 77, 200_000):
        row[ram.FRAMES : ram.FRAMES + 8] = np.frombuffer(frames.to_bytes(8, "little"), np.uint8)
        assert chance(-3, 2 * frames + ram.FOR_FIRE) == ram.player_uniform(row, ram.FOR_FIRE)


def test_clients_started_in_the_same_instant_draw_different_numbers():
    seen = set()
    for name in ("a", "b"):
        client = Client(environment={"PROTEGE_NAME": name})
        ticks(client, *[in_play()] * 300)
        seen.add(tuple(header(frame)["advised_fire"] for frame in client.frames))
    assert len(seen) == 2
    assert all(0.85 < sum(fires) / 300 < 1 for fires in seen)


# --- Controls ---------------------------------------------------------------------------------------------------------


@EVERY_VERSION
def test_the_servers_command_is_applied_in_play_and_zoom_only(version):
    client = Client(version, policy=lambda frame: reply(1, 1, -12))
    for state in ("04", "20"):
        ticks(client, in_play(more=f"00={state}"))
        assert (client.buttons, client.spinner) == ((1, 1, 0), -12)
    for elsewhere in ("00=06", "00=0A", "00=18", "00=1E", "00=22", "05=40"):
        ticks(client, in_play(more=elsewhere))
        assert (client.buttons, client.spinner) == ((0, 0, 0), 0)
    echoes = {(sent["fire"], sent["zap"], sent["spinner"]) for sent in map(header, client.frames[1:])}
    assert echoes == {(1, 1, -12)}, "the echo is the reply as it came, whatever became of it"


def test_the_first_frame_of_a_connection_echoes_nothing():
    client = Client(policy=lambda frame: reply(1, 0, 9))
    ticks(client, in_play(), in_play())
    client.policy = lambda frame: b""
    ticks(client, in_play())
    client.video_frame(after_s=4)  # given up
    client.policy = lambda frame: NEUTRAL
    client.video_frame(after_s=1)
    ticks(client, in_play())
    assert [header(frame)["spinner"] for frame in client.frames] == [0, 9, 9, 0]


def test_a_wild_reply_is_cut_to_what_the_controls_can_do():
    client = Client(policy=lambda frame: reply(-1, 77, -128))
    ticks(client, in_play(), in_play())
    assert (client.buttons, client.spinner) == ((0, 1, 0), -128)
    assert (header(client.frames[1])["fire"], header(client.frames[1])["zap"]) == (255, 77)


def test_attract_mode_presses_start_every_fiftieth_tick_and_has_credits():
    client = Client(environment=SEEDED, policy=lambda frame: reply(1, 1, 5))
    pressed = []
    for number in range(1, 151):
        ticks(client, image("00=04"))
        pressed += [number] * client.buttons[2]
        assert (client.buttons[:2], client.spinner) == ((0, 0), 0)
    assert pressed == [50, 100, 150]
    assert client.patches == {ram.CREDITS: 2}


def test_clients_start_at_ticks_of_their_own():
    def first_press(client: Client) -> int:
        for number in range(1, 51):
            ticks(client, image("00=04"))
            if client.buttons[2]:
                return number
        raise AssertionError("start was not pressed")

    assert len({first_press(Client()) for _ in range(8)}) > 1, "one in fifty to the seventh power that all are alike"


def test_initials_are_taken_by_pressing_fire_every_tenth_tick():
    client = Client()
    fires = []
    for number in range(1, 31):
        ticks(client, in_play(more="00=12"))
        fires += [number] * client.buttons[0]
    assert fires == [10, 20, 30]


@pytest.mark.parametrize("wanted", [*levels.START_LEVELS.tolist(), 2, 34, 80])
def test_a_wanted_level_is_the_highest_menu_entry_not_above_it(wanted):
    entry = Client().part("logic")[b"menu_entry"](wanted)
    assert levels.START_LEVELS[entry] <= wanted
    assert entry == len(levels.START_LEVELS) - 1 or levels.START_LEVELS[entry + 1] > wanted


def menu_ticks(client: Client) -> list[tuple[int, dict[int, int]]]:
    """Fire and the bytes written in the first ticks of the start menu, coming from attract mode."""
    ticks(client, image())
    seen = []
    for _ in range(13):
        client.set(written=client.lua.table())
        ticks(client, in_play(0, "00=16 127=04"))
        seen.append((client.buttons[0], client.patches))
    return seen


def test_the_menu_is_left_alone_for_level_one_and_fire_chooses():
    assert menu_ticks(Client()) == [(0, {})] * 10 + [(1, {}), (0, {}), (0, {})]


def test_a_start_level_writes_cursor_and_limit_of_the_menu():
    chosen = {ram.PLAYER_LANE: 8, ram.MAX_CHOICE: 8}  # entry 8 is level 17
    assert menu_ticks(Client(environment={"PROTEGE_START_LEVEL": "17"}))[:11] == [(0, chosen)] * 10 + [(1, {})]


def test_the_highest_level_on_offer_leaves_the_limit_alone():
    assert menu_ticks(Client(environment={"PROTEGE_START_LEVEL": "highest"}))[0] == (0, {ram.PLAYER_LANE: 4})


def test_the_servers_start_settings_win_over_the_clients():
    here = {"PROTEGE_START_LEVEL": "17"}
    assert menu_ticks(Client(environment=here, welcome=bytes([0x50, 1, 0, 0, 9])))[0] == (0, {ram.PLAYER_LANE: 4})
    assert menu_ticks(Client(environment=here, welcome=bytes([0x50, 1, 0, 1, 0])))[0] == (0, {ram.PLAYER_LANE: 4})
    assert menu_ticks(Client(environment=here, welcome=bytes([0x50, 1, 0, 0, 1])))[0] == (0, {})


def test_memory_is_patched_only_where_asked():
    client = Client(environment={"PROTEGE_UNLOCK_LEVEL": "20"})
    ticks(client, in_play(more="126=00"))
    assert client.patches == {ram.BEST_LEVEL: 19}
    plain = Client()
    ticks(plain, in_play(more="126=00"))
    assert plain.patches == {}
    enough = Client(environment={"PROTEGE_UNLOCK_LEVEL": "20"})
    ticks(enough, in_play(more="126=20"))
    assert enough.patches == {}


@pytest.mark.parametrize(
    ("setting", "program", "patches"),
    [
        ({}, (0xF6, 0x00), {0xA591: 0xEA, 0xA592: 0xEA}),
        ({"PROTEGE_DISARM_CHECKSUM": "no"}, (0xF6, 0x00), {}),
        ({}, (0xEA, 0xEA), {}),
        ({}, (0x20, 0x00), {}),  # another program
    ],
)
def test_the_check_that_misfires_is_disarmed_where_it_stands(setting, program, patches):
    client = Client(environment=setting)
    client.set(rom=client.lua.table_from(dict(zip((0xA591, 0xA592), program, strict=True))))
    ticks(client, in_play())
    assert client.patches == patches


def teacher_of(row: ram.Row):
    def decide(frame: bytes) -> bytes:
        sent = header(frame)
        return reply(sent["advised_fire"], sent["advised_zap"], int(teacher.spinner_to(row, sent["target"])))

    return decide


@EVERY_VERSION
@pytest.mark.parametrize(("setting", "level"), [("1", 1), ("17", 17), ("81", 81)])
def test_the_client_plays_a_machine_from_power_on_to_the_next_game(version, setting, level):
    row = power_on(Cabinet(lives=2), seed=level)
    row[ram.BEST_SCORES : ram.BEST_SCORES + 24] = 0  # so that any score may enter its initials
    policy = teacher_of(row) if level > 1 else lambda frame: reply(1, 0, 3)  # at level 1 the teacher lives too long
    client = Client(version, SEEDED | {"PROTEGE_START_LEVEL": setting}, policy=policy)
    visited: list[int] = []
    starts, echo = [], NEUTRAL
    for number in play(client, row, 6000):
        state = int(row[ram.GAME_STATE])
        if not visited or visited[-1] != state:
            visited.append(state)
            if state == ram.NEW_LIFE and visited[-2] == ram.LEVEL_SELECT:
                starts.append(int(row[ram.P1_LEVEL]) + 1)
        assert client.frames[-1] == expected_frame(row, number, SEED, echo), f"frame {number}"
        echo = policy(client.frames[-1])
        if len(starts) == 2:
            break
    assert starts == [level, level]
    for state in (ram.PLAYING, ram.LIFE_LOST, ram.ENTER_INITIALS, ram.HIGH_SCORE_TABLE):
        assert state in visited
