"""The screens of arcade clients: bytes made again from values draw what the machine draws, and a file carries them."""

import json
import os
import time
from typing import Any

import numpy as np
import pytest

from protege import ProtegeError
from protege.games.tempest.agents.players import find_player
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Bridge, BridgeConfig
from protege.games.tempest.arcade.screens import SCREEN, Arcade, Screen, Screens, activity, arcades, memory_of
from protege.games.tempest.page.views import TempestViews
from protege.games.tempest.rules import ram
from protege.games.tempest.rules.sim import Cabinet, power_on
from protege.games.tempest.task import drawing
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import starts
from tests.games.tempest.arcade.client import Client, Listener, Machine, wait_until

# What the values do not tell, and `memory_of` therefore leaves at 0.
UNTOLD = (
    (ram.NYMPH_TIMER, ram.NYMPH_COUNT), (ram.BLAST_DEPTH, ram.BLAST_COUNT), (ram.ENEMY_FRACTION, ram.ENEMY_COUNT),
    (ram.ESHOT_FRACTION, ram.ESHOT_COUNT), (ram.PLAYER_DEPTH_FRACTION, 1), (ram.CAMERA_FRACTION, 1),
    (ram.SPIKE_WARNING, 1), (ram.BEST_SCORES, 24), (ram.EXPLOSIONS, 1),
)  # fmt: skip


def screen_of(packet: bytes, score: int = 0) -> Screen:
    """A screen as a bridge would leave it."""
    screen: Screen = np.zeros(1, SCREEN)[0]
    screen["packet"] = wire.decode(packet)[0][0]
    screen["client"]["score"] = score
    return screen


def told(machine: Machine) -> ram.Row:
    """A machine's own bytes, without what its values do not tell."""
    row = machine.row.copy()
    for address, count in UNTOLD:
        row[address : address + count] = 0
    row[ram.TICK] = machine.counter & 255
    row[ram.PLAYER_POSITION] = 16 * (row[ram.PLAYER_LANE] & 15) + 8
    for slot in range(ram.ENEMY_COUNT):
        lane, between = row[ram.ENEMY_LANE + slot] & 15, row[ram.ENEMY_TYPE + slot] & ram.BETWEEN_LANES
        before, after = (int(row[ram.TUBE_ANGLE + (place & 15)]) for place in (int(lane) - 1, int(lane)))
        if row[ram.ENEMY_TYPE + slot] & ram.TYPE_BITS == ram.FUSEBALL:
            row[ram.ENEMY_EDGE + slot] = between | 4
        elif between and (before + 8 - after) % 16 == 0:  # the notch of the heart, about which a turn goes all the way
            row[ram.ENEMY_EDGE + slot] = between | after
    return row


def lines(row: ram.Row) -> np.ndarray:
    """A picture's lines, colours and brightness, in an order of their own."""
    picture = drawing.vectors(row)
    flat = np.concatenate([picture.segments, picture.colours, picture.brightness[:, None]], axis=1)
    return flat[np.lexsort(flat.T.round(3))]


@pytest.mark.parametrize("level", [*range(1, 17), 20, 37, 60, 81, 99])
def test_a_game_drawn_from_its_values_is_the_game_drawn_from_its_bytes(level):
    machine = Machine(starts(1, seed=level, level=level)[0])
    kinds, compared = set(), 0
    for tick in range(900):
        packet = machine.packet()
        if machine.in_control():
            made, own = memory_of(screen_of(packet)), told(machine)
            made[ram.SCORE : ram.FRAMES + 8] = own[ram.SCORE : ram.FRAMES + 8]
            made[ram.BEST_SCORES : ram.BEST_SCORES + 24] = 0
            if tick % 3 == 0:
                drawn, wanted = lines(made), lines(own)
                assert drawn.shape == wanted.shape and np.allclose(drawn, wanted, atol=1e-3), f"tick {tick}"
                compared += 1
            kinds |= {int(k) & 7 for k in own[ram.ENEMY_TYPE : ram.ENEMY_TYPE + 7][own[ram.ENEMY_DEPTH :][:7] > 0]}
        chosen = ACTIONS[(7 * tick) % len(ACTIONS)] if tick % 2 else ACTIONS[-1]
        machine.tick(np.array([1, 0, chosen[2]], np.int8).tobytes())
        if machine.is_over():
            machine = Machine(starts(1, seed=level + tick, level=level)[0])
    assert compared > 100 and kinds >= {ram.FLIPPER}


def test_what_the_values_leave_open_is_shown_as_a_title():
    machine = Machine(power_on(Cabinet(free_play=True), seed=4))
    row = memory_of(screen_of(machine.packet()))
    assert row[ram.GAME_STATE] == ram.LOGO and len(lines(row)) > 50
    menu = machine.row
    menu[ram.GAME_STATE], menu[ram.GAME_MODE], menu[ram.PLAYER_LANE] = ram.LEVEL_SELECT, ram.REAL_GAME, 3
    chosen = memory_of(screen_of(machine.packet()))
    assert (chosen[ram.GAME_STATE], chosen[ram.PLAYER_LANE]) == (ram.LEVEL_SELECT, 3)


def test_a_tube_that_is_none_of_the_sixteen_is_drawn_as_that_of_its_level():
    machine = Machine(starts(1, level=4)[0])
    machine.row[ram.TUBE_ANGLE : ram.TUBE_ANGLE + 16] = np.arange(16)
    assert memory_of(screen_of(machine.packet()))[ram.TUBE] == starts(1, level=4)[0][ram.TUBE]


def test_points_are_shown_as_the_machine_shows_them_and_counted_beyond_its_six_digits():
    machine = Machine(starts(1)[0])
    machine.row[ram.SCORE_LOW : ram.SCORE_LOW + 3] = (0x50, 0x34, 0x12)
    row = memory_of(screen_of(machine.packet(), score=3_123_450), best=654_321)
    assert int(ram.bcd_score(row, ram.SCORE_LOW)) == 123_450
    assert int(ram.get_word(row, ram.SCORE)) == 3_123_450
    assert int(ram.bcd_score(row, ram.BEST_SCORES + 21)) == 654_321


# --- the file ---


class Named(Listener):
    name = "ann"

    def control(self, actor: int) -> str:
        return {7: "teacher"}[actor]


def test_a_page_in_another_process_sees_who_plays_what_and_why(tmp_path):
    agent = Named(lambda frames: np.full(len(frames.score), 13))
    with Bridge(agent, BridgeConfig(port=0, screens=tmp_path)) as bridge:
        wait_until(lambda: arcades(tmp_path))
        (arcade,) = arcades(tmp_path)
        assert (arcade.server, arcade.player, arcade.screens()) == (str(bridge.port), "ann", [])
        machines = [Machine(row) for row in starts(2, seed=3, level=[5, 9])]
        idle = Machine(power_on(seed=1))
        clients = [Client(bridge.port, wire.greet(name=f"cabinet {n}")) for n in range(3)]
        for _ in range(20):
            for client, machine in zip(clients, [*machines, idle], strict=True):
                client.play(machine)
                time.sleep(0.005)
        wait_until(lambda: len(arcade.screens()) == 3 and arcade.screens()[0]["name"] == b"cabinet 0")
        first, second, third = arcade.screens()
        assert [int(screen["packet"]["level"]) for screen in (first, second)] == [4, 8]
        assert first["command"].tolist() == ACTIONS[13].tolist() and first["control"] == b"teacher"
        assert third["command"].tolist() == [0, 0, 0] and third["control"] == b""
        assert activity(int(third["packet"]["state"]), int(third["packet"]["mode"])) == "attract mode"
        clients[1].close()
        wait_until(lambda: [screen["name"] for screen in arcade.screens()] == [b"cabinet 0", b"cabinet 2"])
    assert not arcade.is_alive() and arcades(tmp_path) == [] and list(tmp_path.iterdir()) == []


def test_what_a_killed_server_left_behind_and_what_is_none_of_ours_is_passed_over(tmp_path, monkeypatch):
    Screens(tmp_path, 9999, 1, "ann").touch([(0, "cabinet", 300.0)])
    assert [arcade.server for arcade in arcades(tmp_path)] == ["9999"]
    monkeypatch.setattr("protege.games.tempest.arcade.screens.DEAD_S", 0.0)
    assert arcades(tmp_path) == []
    monkeypatch.undo()
    (tmp_path / "tempest-arcade-9999.screens").unlink()
    (tmp_path / "tempest-arcade-1.screens").write_bytes(os.urandom(5000))
    (tmp_path / "tempest-arcade-2.screens").write_bytes(b"")
    assert arcades(tmp_path) == []
    with pytest.raises((OSError, ValueError)):
        Arcade(tmp_path / "tempest-arcade-1.screens")


def test_a_new_server_at_the_same_port_does_not_disturb_whoever_still_looks_at_the_last(tmp_path):
    first = Screens(tmp_path, 9999, 36, "ann")
    first.touch([(0, "old", 1.0)])
    (before,) = arcades(tmp_path)
    second = Screens(tmp_path, 9999, 1, "ben")
    second.touch([])
    assert before.screens()[0]["name"] == b"old"
    assert [(arcade.player, len(arcade.screens())) for arcade in arcades(tmp_path)] == [("ben", 0)]


def test_a_folder_that_cannot_be_written_costs_the_page_and_nothing_else(tmp_path):
    (tmp_path / "file").touch()
    agent = Listener()
    with Bridge(agent, BridgeConfig(port=0, screens=tmp_path / "file")) as bridge, Client(bridge.port) as client:
        assert client.play(Machine(starts(1)[0])) == bytes(3)
    assert "no page can show the clients' games" in agent.notes[0]


# --- the show ---


def heard(message: bytes) -> dict[str, Any]:
    """What a message says, after checking that exactly its lines follow."""
    length = int.from_bytes(message[:4], "little")
    said: dict[str, Any] = json.loads(message[4 : 4 + length])
    drawn = sum(game["lines"] + game.get("gaze", 0) for game in said["games"])
    assert len(message) == 4 + length + 12 * drawn
    return said


class Champion(Listener):
    name = "champion"


def test_the_clients_of_a_server_are_a_show_with_the_players_reasons(tmp_path):
    views = TempestViews(tmp_path)
    champion: Any = find_player("champion")
    agent = Champion(champion.act)
    with Bridge(agent, BridgeConfig(port=0, screens=tmp_path)) as bridge:
        wait_until(lambda: arcades(tmp_path))
        assert views.about()["arcades"] == [{"server": str(bridge.port), "player": "champion"}]
        show = views.open("arcade", {"server": str(bridge.port), "games": "4"})
        assert heard(show.tick()) == {"games": [], "player": "champion", "note": "No client is connected."}
        machine = Machine(starts(1, seed=3, level=5)[0])
        with Client(bridge.port, wire.greet(name="cabinet 7")) as client:
            for _ in range(200):
                client.play(machine)
            time.sleep(0.05)
            wanted = machine.row.copy()
            reply = client.play(machine)
            wait_until(lambda: bridge.batches == 201 and heard(show.tick())["games"])
            said = heard(show.tick())
            (game,) = said["games"]
            assert said["note"].startswith("1 connected, first cabinet 7: playing, ")
            assert (game["client"], game["control"]) == ("cabinet 7", "pupil")
            assert game["score"] == int(ram.get_word(wanted, ram.SCORE)) and game["level"] == 5
            assert (game["lives"], game["lane"]) == (int(wanted[ram.LIVES]), int(wanted[ram.PLAYER_LANE]))
            assert bytes(np.array(game["action"], np.int8)) == reply and game["lines"] > 50
            values = champion.values(agent.seen[-1][0].observation)[0]
            assert game["values"][0] == [*game["action"], round(float(values.max()), 4)]
            assert game["advice"] == agent.seen[-1][0].advice[0].tolist()
    assert heard(show.tick())["note"] == f"No arcade server is at work at port {bridge.port}."


def test_a_show_finds_a_server_that_comes_back_and_does_without_reasons_it_cannot_have(tmp_path):
    show = TempestViews(tmp_path).open("arcade", {"server": "9999"})
    assert heard(show.tick())["games"] == []
    for _ in range(2):
        screens = Screens(tmp_path, 9999, 2, "my.module:Player")
        screen = screen_of(Machine(starts(1)[0]).packet())
        screens.show(1, screen["packet"], screen["client"], (1, 0, 3), "pupil")
        screens.touch([(1, "cabinet", 300.0)])
        (game,) = heard(show.tick())["games"]
        assert game["action"] == [1, 0, 3] and "values" not in game
        screens.close()
        assert heard(show.tick())["games"] == []


@pytest.mark.parametrize("settings", [{"server": "0"}, {"server": "../../etc"}, {"games": "17"}])
def test_a_show_of_no_server_is_refused(tmp_path, settings):
    with pytest.raises(ProtegeError, match="must be a whole number"):
        TempestViews(tmp_path).open("arcade", settings)
