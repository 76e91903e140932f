"""Real MAME, headless: our miniature of the game boots in it, and our client plays it for our server."""

from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np
import pytest

from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Bridge, BridgeConfig
from protege.games.tempest.arcade.demo.cabinet import demo_program, write_rom_set
from protege.games.tempest.arcade.fleet import Settings, copy_client
from protege.games.tempest.arcade.streams import Decisions, Places
from protege.games.tempest.rules import ram
from protege.games.tempest.task.env import Frames
from protege.games.tempest.task.teacher import FIRE_PROBABILITY
from protege.seeds import STREAM_STEP, random_bits
from tests.games.tempest.arcade.client import Listener
from tests.games.tempest.arcade.mame import CLIENT, PROBE, Mame, Recorded, Tap, images, press, probed, until
from tests.games.tempest.task.scenes import Product

pytestmark = [pytest.mark.mame, pytest.mark.needs("mame")]

AT = demo_program().symbols
ATTRACT = [ram.NEW_LIFE, ram.NEW_LIFE_PAUSE, ram.DELAY]
LIFE = [ram.NEW_LIFE, ram.NEW_LIFE_PAUSE, ram.DELAY, ram.PLAYING]
START_LEVEL = 3
SEED = 5  # of the client's chances
INTO_PLAY = [*press(5, "coin"), *press(10, "start"), *press(20, "fire")]


@pytest.fixture(scope="module")
def roms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roms")
    write_rom_set(folder)
    return folder


def states(memory: list[bytes]) -> list[int]:
    """The states passed through, each once."""
    seen = [image[ram.GAME_STATE] for image in memory]
    return [state for i, state in enumerate(seen) if i == 0 or seen[i - 1] != state]


# --- the miniature ---------------------------------------------------------------------------------------------------


def test_a_coin_start_and_fire_lead_from_the_demonstration_into_play(roms, tmp_path):
    memory = probed(roms, tmp_path / "mame", 60, INTO_PLAY)
    assert [image[ram.TICK] for image in memory] == [n & 255 for n in range(len(memory))], "no tick was missed"
    assert states(memory[1:]) == [*ATTRACT, ram.NEW_GAME, ram.LEVEL_SELECT, *LIFE]
    assert [image[ram.CREDITS] for image in (memory[4], memory[8], memory[-1])] == [0, 1, 0]
    last = memory[-1]
    assert [last[at] for at in (ram.GAME_MODE, ram.LIVES, ram.LEVEL_INDEX)] == [ram.REAL_GAME | ram.IN_PROGRESS, 3, 0]
    assert (last[ram.BONUS_INTERVAL], last[ram.DIFFICULTY]) == (2, 0), "the switches as they left the factory"
    assert (last[AT["BOOTS"]], last[AT["COINS"]], last[AT["STARTS"]], last[AT["FIRE_PRESSES"]]) == (1, 1, 1, 1)


def test_a_player_who_does_nothing_loses_three_lives_and_enters_initials(roms, tmp_path):
    memory = probed(roms, tmp_path / "mame", 1150, INTO_PLAY)
    lives = [image[ram.LIVES] for image in memory[40:]]
    assert sorted(set(lives[: lives.index(0)]), reverse=True) == [3, 2, 1]
    seen = states(memory)
    end = [
        ram.LIFE_LOST,
        ram.HIGH_SCORE_CHECK,
        ram.HIGH_SCORE_BOOM,
        ram.ENTER_INITIALS,
        ram.HIGH_SCORE_TABLE,
        ram.DELAY,
    ]
    over = seen.index(ram.HIGH_SCORE_CHECK) - 1
    assert seen[over : over + 6] == end
    assert memory[-1][AT["GAMES_OVER"]] == 1 and memory[-1][ram.GAME_MODE] == 0
    assert memory[-1][AT["BOOTS"]] == 1, "the watchdog was fed all along"


def test_the_controls_reach_the_machine(roms, tmp_path):
    turns = [(60 + n, "dial", 2 * n % 16) for n in range(1, 9)]
    buttons = [(75, "$50", 256 - 20), *press(80, "fire", 12), *press(100, "zap")]
    memory = probed(roms, tmp_path / "mame", 110, [*INTO_PLAY, *turns, *buttons])
    position = [image[ram.PLAYER_POSITION] for image in memory]
    assert position[58] == 0xF0 and position[72] == 0xF0 - 16, "eight turns of the dial by two"
    assert position[78] == position[72] + 20, "the byte a client writes counts as a turn"
    shots = [image[ram.PLAYER_SHOTS] for image in memory]
    assert (max(shots[60:80]), max(shots[80:100])) == (0, 8)
    assert [image[ram.ZAP_USES] for image in (memory[98], memory[103])] == [0, 1]
    assert memory[-1][AT["KILLS"]] > memory[98][AT["KILLS"]]


# --- the client and the server ---------------------------------------------------------------------------------------


class Player(Listener):
    """Does what the teacher advises or, one time in five, anything.

    On its second level it stops firing, so that its games end soon.
    """

    def __init__(self) -> None:
        super().__init__()
        self.dice = np.random.default_rng(7)
        self.decisions = 0
        self.victim: Popen[Any] | None = None  # to be killed in the middle of the next decision

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        self.decisions += len(clients)
        if self.victim is not None:
            self.victim.kill()
            self.victim = None
        chosen = frames.advice.copy()
        wild = self.dice.random(len(clients)) < 0.2
        chosen[wild] = self.dice.integers((0, 0, -31), (2, 2, 32), (int(wild.sum()), 3))
        chosen[frames.level > START_LEVEL, :2] = 0
        return Decisions(chosen, wild.astype(np.int8))

    def count(self, what: str) -> int:
        return sum(int(getattr(steps, what).sum()) for steps in self.steps)


@pytest.fixture
def player() -> Player:
    return Player()


@pytest.fixture
def bridge(player: Player) -> Iterator[Bridge]:
    with Bridge(player, BridgeConfig(port=0, start=wire.Start(level=START_LEVEL))) as bridge:
        yield bridge


def server(port: int) -> str:
    return f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def recording(roms: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recorded, list[bytes], Player]:
    """1,600 ticks of the client: what went over the wire, the memory it saw, and what the server made of it."""
    folder, player = tmp_path_factory.mktemp("recording"), Player()
    settings = BridgeConfig(port=0, start=wire.Start(level=START_LEVEL))
    with Bridge(player, settings) as bridge, Tap(bridge.port) as tap:
        watched = {"PROBE_DUMP": folder / "ram", "PROBE_TICKS": 1600, "PROBE_CLIENT": CLIENT}
        with Mame(roms, folder / "mame", PROBE, **watched, PROTEGE_SERVER=server(tap.port), PROTEGE_SEED=SEED) as mame:
            assert mame.wait() == 0, mame.said[-5:]
        assert len(tap.recorded) == 1 and set(bridge.tallies) <= {"came", "left"}, (bridge.tallies, player.notes)
    return tap.recorded[0], images(folder / "ram"), player


def test_what_goes_over_the_wire_is_what_python_computes_from_the_same_memory(recording):
    recorded, memory, _ = recording
    frames = recorded.frames()
    assert len(frames) > 1500 and (np.diff(frames["counter"].astype(int)) == 1).all()
    for frame in frames:
        tick = int(frame["counter"])
        now, before = memory[tick - 1], memory[tick - 2] if tick > 1 else None
        assert frame["values"].astype(np.float32).tolist() == Product.values(now, before), f"frame {tick}"
        assert (frame["objective"], frame["subjective"], frame["done"]) == Product.rewards(now, before)
        advice = Product.advice(now, "meet")
        stream = (SEED + tick * int(STREAM_STEP)) % 2**64
        fire = (int(random_bits(np.uint64(stream))) >> 11) * 2.0**-53 < FIRE_PROBABILITY
        assert (frame["target"], frame["advised_fire"], frame["advised_zap"]) == (advice.lane, fire, advice.zap)
        assert frame["score"] == Product.score(now)
        header = [frame[name] for name in ("state", "mode", "lane", "open", "level")]
        assert header == [now[0x00], now[0x05], now[0x200] & 15, int(now[0x111] != 0), now[0x9F]]


def test_the_recording_holds_everything_a_game_has(recording):
    _, memory, _ = recording
    seen = {image[ram.GAME_STATE] for image in memory}
    assert seen >= {*LIFE, ram.LEVEL_SELECT, ram.LIFE_LOST, ram.ENTER_INITIALS, ram.ZOOM, ram.LEVEL_DONE, ram.ZOOM_IN}
    slots = range(ram.ENEMY_COUNT)
    types = [image[ram.ENEMY_TYPE + s] for image in memory for s in slots if image[ram.ENEMY_DEPTH + s]]
    assert {kind & ram.TYPE_BITS for kind in types} == set(range(5)) and any(kind & ram.BETWEEN_LANES for kind in types)
    assert {image[ram.OPEN] for image in memory if image[ram.GAME_STATE] == ram.PLAYING} == {0x00, 0xFF}


def test_commands_reach_the_machine_before_its_next_tick(recording):
    recorded, memory, _ = recording
    frames, commands = recorded.frames(), recorded.commands()
    checked = 0
    for frame, (fire, zap, spinner) in zip(frames, commands):
        now, then = memory[frame["counter"] - 1], memory[min(frame["counter"], len(memory) - 1)]
        if not all(image[0x00] == ram.PLAYING and image[0x05] == 0xC0 and image[0x201] < 0x80 for image in (now, then)):
            continue
        checked += 1
        assert then[ram.BUTTONS] & (ram.FIRE_BUTTON | ram.ZAP_BUTTON) == fire * ram.FIRE_BUTTON | zap * ram.ZAP_BUTTON
        if now[ram.OPEN] == 0:
            assert then[ram.PLAYER_POSITION] == (now[ram.PLAYER_POSITION] - spinner) & 255
    assert checked > 200
    echoed = [(int(f["fire"]), int(f["zap"]), int(f["spinner"])) for f in frames[1:]]
    assert echoed == commands[: len(echoed)]


def test_lives_and_games_end_for_the_learner_too(recording):
    recorded, memory, player = recording
    frames = recorded.frames()
    real = (frames["mode"] & ram.REAL_GAME) != 0
    assert player.count("terminated") == int(frames["done"][real].sum()) >= 3
    assert player.games and all(game.start_level == START_LEVEL and game.deaths == 3 for game in player.games)
    scores = [Product.score(image) for before, image in zip(memory, memory[1:])
              if before[0] != ram.HIGH_SCORE_CHECK and image[0] == ram.HIGH_SCORE_CHECK]  # fmt: skip
    assert [game.score + game.start_bonus for game in player.games] == scores


def test_three_clients_play_at_once_and_a_client_told_to_leave_asks_for_a_save(roms, tmp_path, bridge, player):
    with Tap(bridge.port) as tap:

        def start(name: str) -> Mame:
            told = {"PROTEGE_SERVER": server(tap.port), "PROTEGE_STOP_FILE": tmp_path / f"stop {name}"}
            return Mame(roms, tmp_path / name, CLIENT, PROTEGE_NAME=name, **told)

        clients = [start(name) for name in ("ann", "ben", "cat")]
        with clients[0], clients[1], clients[2]:
            until(lambda: len(bridge.clients()) == 3 and all(client.frames > 150 for client in bridge.clients()))
            assert {client.name for client in bridge.clients()} == {"ann", "ben", "cat"}
            (tmp_path / "stop ben").touch()
            assert clients[1].wait() == 0, clients[1].said[-5:]
            until(lambda: len(bridge.clients()) == 2)
            assert player.saves == 1
            assert {client.name for client in bridge.clients()} == {"ann", "cat"}
    for recorded in tap.recorded:
        frames = recorded.frames()
        # The last frame of one that leaves may be the one before once more, with the wish to save.
        assert set(np.diff(frames["counter"][:-1].astype(int))) == {1}, "each has a connection of its own"
        commands = recorded.commands()
        assert abs(len(frames) - len(commands)) <= 1
        echoed = [(int(f["fire"]), int(f["zap"]), int(f["spinner"])) for f in frames[1:]]
        assert echoed == commands[: len(echoed)], "nobody got another's command"
    assert sum(int(recorded.frames()["save"].sum()) for recorded in tap.recorded) == 1
    assert set(bridge.tallies) <= {"came", "left", "saves passed on"}


def test_a_client_outlives_its_server_and_plays_on_for_the_next(roms, tmp_path, player):
    tap = Tap(0)
    with tap, Mame(roms, tmp_path / "mame", PROTEGE_SERVER=server(tap.port)) as mame:
        with Bridge(player, BridgeConfig(port=0)) as first:
            tap.server_port = first.port
            until(lambda: player.decisions > 50)
            tap.reset()
            until(lambda: len(tap.recorded) == 2 and len(tap.recorded[1].commands()) > 50)
        before, decisions = tap.recorded[1].frames()["counter"][-1], player.decisions
        with Bridge(player, BridgeConfig(port=0)) as second:
            tap.server_port = second.port
            until(lambda: player.decisions > decisions + 50)
            assert tap.recorded[-1].frames()["counter"][0] > before, "the game went on meanwhile"
            assert "came" in second.tallies and set(second.tallies) <= {"came", "left"}
        assert mame.process.poll() is None


def test_a_client_that_is_killed_leaves_a_cut_stream_and_its_place_to_the_next(roms, tmp_path, bridge, player):
    with Mame(roms, tmp_path / "one", PROTEGE_SERVER=server(bridge.port), PROTEGE_NAME="one") as mame:
        until(lambda: player.decisions > 100)
        player.victim = mame.process  # while it decides: between two lives there would be nothing to cut
        until(lambda: not bridge.clients())
    until(lambda: player.count("truncated") == 1)
    with Mame(roms, tmp_path / "two", PROTEGE_SERVER=server(bridge.port), PROTEGE_NAME="two"):
        until(lambda: [(client.place, client.name) for client in bridge.clients()] == [(0, "two")])


def test_a_copied_client_needs_nothing_but_its_settings_file(roms, tmp_path, player):
    with Bridge(player, BridgeConfig(port=0, token="open sesame")) as bridge:
        copy_client(tmp_path / "copy", Settings(server=server(bridge.port), token="open sesame"))
        with Mame(roms, tmp_path / "mame", tmp_path / "copy" / "main.lua") as mame:
            until(lambda: player.decisions > 20)
            assert any(f"connected to {server(bridge.port)}" in line for line in mame.said)
        assert set(bridge.tallies) <= {"came", "left"}
