"""Battles for the page: which there are, handed out whole or refused with one line, and new ones as they finish."""

import asyncio
import json
import os

import httpx
import pytest
import websockets

from protege import ProtegeError
from protege.games.echelon.page.views import Arrivals, EchelonViews
from protege.games.echelon.recordings.recording import BadRecording, Recorder, Recording
from protege.games.echelon.world.mechs import BLUE, MEDIUM, RED
from protege.runs.run import create_run
from tests.dashboard.serving import served
from tests.games.echelon.rules.fields import act, field, placed

ABOUT = {"players": ("hard", "medium"), "seed": 1, "swapped": False}


@pytest.fixture(scope="module")
def contents() -> bytes:
    battles = field(placed(BLUE, MEDIUM, 10, 20), placed(RED, MEDIUM, 18, 20, yaw=3.1), length=300)
    recorder = Recorder(battles, 0, ABOUT)
    for _ in range(45):
        act(battles, {0: {"special": True}})
        recorder.note()
    return recorder.to_bytes()


def ask(page, **settings):
    return httpx.get(f"{page.url}api/games/echelon/file", params=settings)


def trained(folder, name="pupil", game="echelon"):
    return create_run(game, "ppo", {"minutes": 1}, (), name=name, folder=folder)


def test_recordings_come_whole_or_not_at_all(tmp_path, contents):
    whole, cut, foreign, huge = (tmp_path / name for name in ("whole.rec", "cut.rec", "foreign.rec", "huge.rec"))
    whole.write_bytes(contents)
    cut.write_bytes(contents[:-1])
    foreign.write_bytes(b"GIF89a" * 50)
    with huge.open("wb") as file:
        file.truncate((1 << 26) + 1)
    with served(tmp_path, {"echelon": EchelonViews(tmp_path, [whole, cut, foreign, huge])}) as page:
        listed = httpx.get(f"{page.url}api/games/echelon").json()["battles"]
        assert [battle["file"] for battle in listed] == ["whole.rec", "cut.rec", "foreign.rec", "huge.rec"]
        assert ask(page, given=0).content == contents
        for number, reason in ((1, "cut off"), (2, "is no Echelon recording"), (3, "not a battle")):
            answer = ask(page, given=number)
            assert answer.status_code == 400 and reason in answer.json()["error"]
            assert "\n" not in answer.json()["error"] and str(tmp_path) not in answer.json()["error"]


def test_a_page_gets_nothing_but_recordings_of_runs(tmp_path, contents):
    (tmp_path / "secret.rec").write_bytes(contents)
    with trained(tmp_path) as run, served(tmp_path, {"echelon": EchelonViews(tmp_path)}) as page:
        (run.recordings / "a.rec").write_bytes(contents)
        assert ask(page, run="pupil", file="a.rec").content == contents
        for settings in (
            {"run": "pupil", "file": "../../secret.rec"},
            {"run": "..", "file": "secret.rec"},
            {"run": "pupil", "file": "../run.json"},
            {"run": "pupil", "file": "b.rec"},
            {"given": "0"},
            {"given": "-1"},
            {"given": "99999999999999999999"},
            {},
        ):
            answer = ask(page, **settings)
            assert answer.status_code in (400, 404) and answer.json()["error"], settings


def test_every_byte_is_read_before_a_recording_is_handed_out(contents):
    assert Recording(contents).checked() == contents
    for at in range(len(contents) - 200, len(contents), 20):  # in the last block, which opening alone does not read
        with pytest.raises(BadRecording, match="is damaged"):
            Recording(contents[:at] + bytes([contents[at] ^ 16]) + contents[at + 1 :]).checked()


def test_battles_are_told_newest_first_and_only_those_of_this_game(tmp_path, contents):
    with trained(tmp_path) as run, trained(tmp_path, "other", "tempest") as other:
        for age, name in enumerate(("c.rec", "a.rec", "b.rec")):
            (run.recordings / name).write_bytes(contents)
            os.utime(run.recordings / name, (1_000_000 - age, 1_000_000 - age))
        (run.recordings / "film.gif").write_bytes(b"GIF89a")
        (run.recordings / ".half.rec").write_bytes(contents[:50])
        (other.recordings / "d.rec").write_bytes(contents)
        wanted = [{"run": "pupil", "file": name} for name in ("c.rec", "a.rec", "b.rec")]
        assert EchelonViews(tmp_path).about()["battles"] == wanted
        assert json.loads(Arrivals(run).tick())["battles"] == wanted


def test_whoever_comes_late_is_told_all_at_once(tmp_path, contents):
    async def visit(page):
        address = f"{page.url.replace('http', 'ws')}api/games/echelon/battles?run=pupil"
        async with websockets.connect(address) as early:
            assert json.loads(await early.recv()) == {"battles": []}
            (run.recordings / "a.rec").write_bytes(contents)
            while not json.loads(await early.recv())["battles"]:
                pass
            async with websockets.connect(address) as late:
                assert json.loads(await late.recv()) == {"battles": [{"run": "pupil", "file": "a.rec"}]}

    with trained(tmp_path) as run, served(tmp_path, {"echelon": EchelonViews(tmp_path)}) as page:
        asyncio.run(asyncio.wait_for(visit(page), 20))


def test_what_there_is_not_is_said(tmp_path):
    views = EchelonViews(tmp_path)
    with pytest.raises(ProtegeError, match="there is no live view 'watch': expected battles"):
        views.open("watch", {})
    with pytest.raises(ProtegeError, match="nobody"):
        views.open("battles", {"run": "nobody"})
    assert views.high_scores() == [] and views.about() == {"battles": []}
