"""The dashboard's server: what it answers, to whom, and what it refuses."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from starlette.responses import PlainTextResponse

from protege import ProtegeError
from protege.cli import __main__ as cli
from protege.cli.page import ServerProcess
from protege.dashboard import live, server
from protege.dashboard.feeds import Feeds, Place, history
from protege.dashboard.guard import BODY_BYTES, Guard
from protege.dashboard.server import listen
from protege.runs.metrics import Metric
from protege.runs.run import open_run
from tests.dashboard.serving import Counting, Fair, log, make_run, served

COMMAND = {"command": "save"}
GAMES = Path(server.__file__).parents[1] / "games"


@pytest.fixture
def page(tmp_path):
    with make_run(tmp_path, "one"), served(tmp_path) as page:
        yield page


def get(page, path, **headers):
    return httpx.get(page.url + path, headers=headers)


def trusted(page):
    return {"authorization": f"Bearer {page.token}"}


def post(page, body=COMMAND, run="one", **headers):
    return httpx.post(f"{page.url}api/runs/{run}/commands", json=body, headers=headers)


# --- runs ---


def test_runs_are_listed_newest_first_and_told_with_their_metrics(tmp_path, page):
    with make_run(tmp_path, "two", 0) as two:
        assert [run["name"] for run in get(page, "api/runs").json()] == ["two", "one"]
        two.recordings.joinpath("game.gif").write_bytes(b"GIF89a")
        found = get(page, "api/runs/two").json()
    assert found["recordings"] == ["game.gif"] and found["status"] == "running" and found["latest"] == {}
    assert found["metrics"][0] == {
        "name": "eval_score", "unit": "points", "meaning": "mean score on held-out games", "family": "score",
        "better": "higher", "label": "pupil", "interval": ["eval_score_low", "eval_score_high"],
        "baseline": "teacher_score", "role": "", "control": "", "column": None, "card": None,
    }  # fmt: skip
    assert found["metrics"][-1]["card"] == {"title": "frames/s", "place": 1, "format": "plain", "most": None}
    assert get(page, "api/runs/one").json()["latest"]["loss"]["value"] == pytest.approx(1 / 50)
    assert get(page, "api/runs/two/recordings/game.gif").content == b"GIF89a"
    for name in ("none.gif", "..%2Frun.json", "run.json"):
        assert get(page, f"api/runs/two/recordings/{name}").status_code == 404


def test_series_come_thinned_ranged_and_in_increments(tmp_path, page):
    def loss(**asked):
        return httpx.get(f"{page.url}api/runs/one/series", params={"metric": "loss", **asked}).json()

    whole = loss()
    assert whole["points"]["loss"]["steps"] == list(range(0, 50_000, 1000))
    assert "low" not in whole["points"]["loss"], "every point is one value, so there is no range to tell"
    thinned = loss(points=5)["points"]["loss"]
    assert len(thinned["steps"]) == 5 and thinned["high"][0] == 1.0 and thinned["low"][0] < thinned["mean"][0] < 1.0
    assert loss(start=10_000, stop=12_000)["points"]["loss"]["steps"] == [10_000, 11_000, 12_000]
    assert loss(since_row=whole["row"])["points"]["loss"]["steps"] == []
    with contextlib.closing(open_run("one", tmp_path)) as run:
        assert run.metrics.series("loss").row == whole["row"]


def test_figures_can_be_taken_along_as_csv(page):
    answer = get(page, "api/runs/one/metrics.csv?metric=loss&metric=epsilon")
    lines = answer.text.splitlines()
    assert lines[0] == "step,time,loss,epsilon" and len(lines) == 51 and lines[1].startswith("0,")
    assert 'filename="one.csv"' in answer.headers["content-disposition"]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("api/runs/none", 404, "there is no run none"),
        ("api/runs/..%2F..%2Fetc", 404, ""),
        ("api/runs/%2e%2e", 404, "no name for a run"),
        ("api/runs/one/series?metric=nothing", 400, "there is no metric nothing"),
        ("api/runs/one/series?along=mood", 400, "along must be step or time; got 'mood'"),
        ("api/runs/one/series?start=soon", 400, "start must be a number; got 'soon'"),
        ("api/runs/one/series?start=nan", 400, "start must be a number"),
        ("api/games/chess", 404, "there is no game 'chess' here"),
        ("api/none", 404, ""),
    ],
)
def test_a_mistake_is_answered_with_its_reason(page, path, status, reason):
    answer = get(page, path)
    assert answer.status_code == status and reason in answer.text


# --- news ---


async def next_news(feed):
    """The next message that is more than a sign of life."""
    while "run" not in (news := json.loads(await feed.recv())):
        pass
    return news


async def follow(page, words: Any, until, patience=8.0, **headers):
    """Messages of the feed until one satisfies `until`."""
    found: list[dict[str, Any]] = []
    async with websockets.connect(page.url.replace("http", "ws") + "api/feed", additional_headers=headers) as feed:
        await feed.send(json.dumps(words))
        async with asyncio.timeout(patience):
            while not found or not until(found[-1]):
                found.append(json.loads(await feed.recv()))
    return found


def test_a_viewer_gets_the_history_and_then_only_what_is_new(tmp_path):
    async def watch(page, run):
        async with websockets.connect(page.url.replace("http", "ws") + "api/feed") as feed:
            await feed.send(json.dumps({"watch": {"one": {"row": 0, "event": 0}}}))
            first = await next_news(feed)
            log(run, range(50, 53))
            run.event("toggle", "teacher off")
            second = await next_news(feed)
            run.stop()
            run.close()
            third = await next_news(feed)
            return first, second, third

    with make_run(tmp_path, "one") as run, served(tmp_path) as page:
        first, second, third = asyncio.run(watch(page, run))
    assert first["points"]["loss"]["steps"] == list(range(0, 50_000, 1000)) and first["status"] == "running"
    assert [event["kind"] for event in first["events"]] == ["fresh"] and first["viewers"] == 1
    assert second["points"]["loss"]["steps"] == [50_000, 51_000, 52_000] and second["step"] == 52_000
    assert second["points"]["eval_score"]["mean"] == [5000.0]
    assert [event["text"] for event in second["events"]] == ["teacher off"]
    assert third["status"] == "stopped" and third["points"] == {} and third["row"] == second["row"]


def test_a_viewer_that_was_away_goes_on_where_it_was(tmp_path):
    with make_run(tmp_path, "one") as run, served(tmp_path) as page:
        *_, before = asyncio.run(follow(page, {"watch": {"one": {}}}, lambda news: "points" in news))
        log(run, range(50, 52))
        place = {"row": before["row"], "event": before["event"]}
        *_, after = asyncio.run(follow(page, {"watch": {"one": place}}, lambda news: "points" in news))
    assert after["points"]["loss"]["steps"] == [50_000, 51_000] and after["events"] == []


def test_a_run_that_is_not_there_is_told_once_and_senseless_words_are_passed_over(page):
    news = asyncio.run(follow(page, {"watch": {"none": {}}}, lambda news: "error" in news))
    assert "there is no run none" in news[-1]["error"]
    row: Any
    for row in ("x", 2**70):
        heard = asyncio.run(follow(page, {"watch": {"one": {"row": row}}}, lambda news: True))
        assert heard == [{"viewers": 1}], "it goes on and says that it lives"
    senseless: list[Any] = [[], {"watch": []}, {"watch": {"one": 1}}, {"watch": dict.fromkeys(map(str, range(99)), {})}]
    for nonsense in senseless:
        heard = asyncio.run(follow(page, nonsense, lambda news: news.keys() == {"viewers"}))
        assert heard == [{"viewers": 1}], "it goes on and says that it lives"


def test_a_long_history_is_finest_where_it_is_newest(tmp_path):
    with make_run(tmp_path, "one", 0) as run:
        # A night of values, one every two seconds; the file's clock is its row number.
        database = run.metrics._opened()
        ((loss,),) = database.execute("SELECT id FROM metrics WHERE name = 'loss'").fetchall()
        end = 1_700_000_000 * 1_000_000
        rows = [(loss, end - 2_000_000 * i, 20_000 - i, float(i)) for i in range(15_000)]
        database.execute("BEGIN")
        database.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows)
        database.execute("COMMIT")
        found = history(run.metrics, "loss", end)
    times = found["times"]
    assert times == sorted(times) and len(set(times)) == len(times) <= 400
    assert sum(time >= 1_700_000_000 - 60 for time in times) == 31, "the last minute is whole"
    assert found["high"][0] == 14_999.0 and found["mean"][-1] == 0.0


def test_viewers_who_are_as_far_share_one_reading(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.dashboard.feeds.REMEMBERED_S", 60.0)
    with make_run(tmp_path, "one"):
        feeds = Feeds(tmp_path)
        first = feeds.news("one", Place())
        assert first and feeds.news("one", Place()) is first
        assert feeds.news("one", Place(first["row"], first["event"], "running")) is None


# --- steering ---


def test_a_command_with_the_token_reaches_the_training(tmp_path):
    with make_run(tmp_path, "one") as run, served(tmp_path) as page:
        assert get(page, "api/token").json() == {"ok": False}
        assert get(page, "api/token", **trusted(page)).json() == {"ok": True}
        assert post(page, **trusted(page)).json() == {"sent": "save"}
        assert [command.name for command in run.commands()] == ["save"]


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer wrong", "wrong", "Bearer é".encode("latin-1")])
def test_without_the_token_nothing_is_sent(tmp_path, token):
    with make_run(tmp_path, "one") as run, served(tmp_path) as page:
        answer = post(page, authorization=token)
        assert answer.status_code == 401 and "needs the token" in answer.json()["error"]
        assert run.commands() == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"command": "format"}, "there is no command 'format': the commands are"),
        ({"command": "save", "arguments": {"value": 1}}, "command save takes no arguments"),
        ({"command": "epsilon", "arguments": {"value": 1.5}}, 'command epsilon takes {"value": 0 to 1}'),
        ({"command": "learning_rate", "arguments": {"value": 1}}, 'takes {"value": 1e-06 to 0.01}'),
        ({"command": "greedy", "arguments": {"on": "yes"}}, 'takes {"on": true or false}'),
        ({"command": "save", "more": 1}, "expected"),
        ({}, "expected"),
        ([], "expected"),
    ],
)
def test_commands_that_make_no_sense_are_refused(tmp_path, body, reason):
    with make_run(tmp_path, "one") as run, served(tmp_path) as page:
        answer = post(page, body, **trusted(page))
        assert answer.status_code == 400 and reason in answer.json()["error"]
        assert run.commands() == []


def test_arguments_go_with_the_command(tmp_path):
    with make_run(tmp_path, "one") as run, served(tmp_path) as page:
        for order in (
            ("epsilon", {"value": 0.05}),
            ("epsilon", {"step": -1}),
            ("greedy", {"on": True}),
            ("greedy", {}),
        ):
            post(page, {"command": order[0], "arguments": order[1]}, **trusted(page)).raise_for_status()
            assert [(command.name, command.arguments) for command in run.commands()] == [order]


def test_how_the_switches_stand_comes_with_the_news_and_with_the_run(tmp_path):
    with make_run(tmp_path, "one") as run, served(tmp_path) as page:
        assert get(page, "api/runs/one").json()["controls"] == {}
        feeds = Feeds(tmp_path)
        first = feeds.news("one", Place()) or {}
        run.show_controls({"greedy": {"on": True}})
        run.event("command", "greedy: greedy on")
        place = Place(first["row"], first["event"], first["status"])
        news = feeds.news("one", place)
        assert news and news["controls"] == {"greedy": {"on": True}}
        assert get(page, "api/runs/one").json()["controls"] == {"greedy": {"on": True}}


def test_a_run_that_is_not_being_trained_takes_no_command(tmp_path):
    make_run(tmp_path, "one").close()
    with served(tmp_path) as page:
        answer = post(page, **trusted(page))
        assert answer.status_code == 404 and "not being trained" in answer.json()["error"]


# --- refusals ---

FOREIGN = [
    {"host": "evil.example"},  # a name that somebody pointed to this machine
    {"host": "127.0.0.1.evil.example:8765"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},  # another port of this machine
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_other_sites_are_refused_even_with_the_token(tmp_path, headers):
    with make_run(tmp_path, "one") as run, served(tmp_path) as page:
        answer = post(page, **trusted(page), **headers)
        assert answer.status_code == 403 and answer.json()["error"]
        assert get(page, "api/runs", **headers).status_code == 403
        assert run.commands() == []


@pytest.mark.parametrize("headers", [headers for headers in FOREIGN if "host" not in headers])
@pytest.mark.parametrize("path", ["api/feed", "api/games/tempest/play"])
def test_other_sites_get_no_socket(page, path, headers):
    async def connect():
        async with websockets.connect(page.url.replace("http", "ws") + path, additional_headers=headers):
            pass

    with pytest.raises(websockets.InvalidStatus) as refusal:
        asyncio.run(connect())
    assert refusal.value.response.status_code == 403


def test_a_link_from_another_site_may_lead_to_the_page_but_to_nothing_else(page):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert get(page, "", **headers).status_code == 200
    assert get(page, "api/runs", **headers).status_code == 403


def test_this_page_itself_may_ask(page):
    own = page.url.rstrip("/")
    assert get(page, "api/runs", origin=own, **{"sec-fetch-site": "same-origin"}).status_code == 200
    assert get(page, "api/runs", host=f"localhost:{own.rpartition(':')[2]}").status_code == 200


def test_large_bodies_and_bodies_of_unknown_length_are_refused_unread(page):
    url = f"{page.url}api/runs/one/commands"
    fits = json.dumps({"command": "x" * (BODY_BYTES - 15)})
    assert len(fits) == BODY_BYTES and httpx.post(url, content=fits, headers=trusted(page)).status_code == 400
    assert httpx.post(url, content=fits + " ", headers=trusted(page)).status_code == 413
    assert httpx.post(url, content=iter([b"{}"]), headers=trusted(page)).status_code == 411
    with socket.create_connection(("127.0.0.1", httpx.URL(page.url).port), timeout=10) as line:
        line.sendall(b"POST /api/runs/one/commands HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 413")


def test_long_messages_close_a_socket(page):
    async def shout():
        async with websockets.connect(page.url.replace("http", "ws") + "api/feed") as feed:
            await feed.send("x" * 20_000)
            while True:
                await feed.recv()

    with pytest.raises(websockets.ConnectionClosedError) as closed:
        asyncio.run(shout())
    assert closed.value.rcvd and closed.value.rcvd.code == 1009


def test_other_methods_change_nothing(page):
    for method in ("PUT", "DELETE", "PATCH", "POST"):
        assert httpx.request(method, f"{page.url}api/runs/one", headers=trusted(page)).status_code == 405
    assert get(page, "api/runs/one/commands").status_code == 404


@pytest.mark.parametrize("path", ["", "app.js", "api/runs", "api/runs/none"])
def test_every_answer_says_that_nothing_may_come_from_elsewhere(page, path):
    headers = get(page, path).headers
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == ("no-store" if path.startswith("api") else "no-cache")


def test_the_page_is_made_of_files_and_none_outside_them_can_be_had(page):
    index = get(page, "")
    assert index.headers["content-type"].startswith("text/html") and "app.js" in index.text
    assert get(page, "app.js").headers["content-type"].startswith("text/javascript")
    assert "Leon Sorokin" in get(page, "vendor/uplot-LICENSE").text
    for path in ("..%2fserver.py", "%2e%2e/server.py", "static/../../server.py"):
        assert get(page, path).status_code == 404
    for file in [*server.STATIC.rglob("*"), *GAMES.glob("*/page/static/*")]:
        if file.suffix in (".html", ".js", ".css") and "vendor" not in file.parts:
            text = file.read_text()
            assert "https://" not in text and "http://" not in text.replace("http://www.w3.org/2000/svg", ""), file


def test_open_to_other_machines_it_goes_by_numbers_and_its_own_names_only():
    guard = Guard(PlainTextResponse(""), "0.0.0.0")

    def status(host):
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host.encode())]}
        return guard.refusal(scope)[0]

    assert [status(host) for host in ("192.168.1.5:8765", "[fe80::1]:8765", "localhost")] == [200, 200, 200]
    assert status(socket.gethostname()) == 200
    assert status("evil.example:8765") == 403
    assert Guard(PlainTextResponse(""), "127.0.0.1").refusal(
        {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"192.168.1.5")]}
    ) == (403, "this server does not go by the name '192.168.1.5': open it under the address it printed")


# --- ports ---


def test_a_taken_port_gives_way_to_the_next_and_it_is_said():
    first, note = listen("127.0.0.1", 0)
    with first:
        port = first.getsockname()[1]
        assert note == ""
        second, note = listen("127.0.0.1", port)
        with second:
            taken = second.getsockname()[1]
            assert port < taken < port + server.PORTS_TRIED
            assert note == f"port {port} is taken, so the page is at port {taken}"


def test_without_a_free_port_the_reason_is_given(monkeypatch):
    monkeypatch.setattr(server, "PORTS_TRIED", 1)
    first, _ = listen("127.0.0.1", 0)
    with first, pytest.raises(ProtegeError, match="no page can be served at 127.0.0.1, ports"):
        listen("127.0.0.1", first.getsockname()[1])


def test_the_link_hides_the_token_behind_the_hash():
    page = server.Served("http://127.0.0.1:8765/", "secret", "", lambda: None)
    assert page.link() == "http://127.0.0.1:8765/#token=secret"
    assert page.link("/play") == "http://127.0.0.1:8765/#/play?token=secret"
    assert page.link("/live?level=3") == "http://127.0.0.1:8765/#/live?level=3&token=secret"


# --- what games add to the page ---


def test_a_game_s_own_files_come_from_its_folder_and_none_outside_it(tmp_path):
    static = tmp_path / "fair" / "static"
    static.mkdir(parents=True)
    (static / "wheel.js").write_text("export default class {}")
    (static.parent / "secret.py").write_text("nobody's business")
    (static / "out.js").symlink_to(static.parent / "secret.py")
    own = live.Page(static, (live.Tab("wheel", "Wheel", "wheel.js"),), ("fair.css",), "links.js")
    with served(tmp_path / "runs", {"fair": Fair(own), "plain": Fair()}) as page:
        fair, plain = get(page, "api/about").json()["games"]
        assert fair == {
            "name": "fair",
            "tabs": [{"name": "wheel", "title": "Wheel", "module": "/games/fair/wheel.js"}],
            "styles": ["/games/fair/fair.css"],
            "links": "/games/fair/links.js",
        }
        assert plain == {"name": "plain", "tabs": [], "styles": [], "links": None}
        module = get(page, "games/fair/wheel.js")
        assert module.status_code == 200 and module.headers["content-type"].startswith("text/javascript")
        assert module.headers["content-security-policy"].startswith("default-src 'self';")
        assert module.headers["cache-control"] == "no-cache"
        outside = ["..%2fsecret.py", "%2e%2e/secret.py", "x/../../secret.py", "%2e%2e%2fsecret.py", "out.js", ""]
        for path in [*(f"games/fair/{name}" for name in outside), "games/plain/wheel.js", "games/chess/wheel.js"]:
            assert get(page, path).status_code == 404, path
        assert get(page, "games/fair/wheel.js", origin="http://evil.example").status_code == 403


# --- live views ---


def view_of(page, path):
    return websockets.connect(f"{page.url.replace('http', 'ws')}api/games/fair/{path}")


def test_viewers_of_a_shared_view_see_the_same_one_and_it_ends_with_the_last(tmp_path):
    fair = Fair()

    async def visit(page):
        async with (
            view_of(page, "watch?a=1") as one,
            view_of(page, "watch?a=1") as two,
            view_of(page, "play?a=1") as own,
        ):
            for viewer in (one, two, own):
                await viewer.recv()
            assert len(fair.opened) == 2
            await one.send(json.dumps({"hello": 1}))
            while json.loads(await two.recv())[1] != [{"hello": 1}]:
                pass
            await two.send("nonsense")
            await two.send("[1]")
            await one.close()
            before = json.loads(await two.recv())[0]
            assert json.loads(await two.recv())[0] > before, "it goes on for the other"
        await asyncio.sleep(0.3)
        ended = fair.opened[0].ticks
        await asyncio.sleep(0.2)
        assert fair.opened[0].ticks == ended, "nobody watches, nobody plays"

    with served(tmp_path, {"fair": fair}) as page:
        asyncio.run(asyncio.wait_for(visit(page), 20))


def test_a_slow_viewer_misses_pictures_and_none_pile_up():
    async def doze():
        broadcast = live.Broadcast(lambda: Counting({}), "slow")
        slow = broadcast.enter()
        await asyncio.sleep(0.5)  # a hundred ticks
        assert slow.qsize() == live.MOST_WAITING
        kept = [json.loads(slow.get_nowait() or "")[0] for _ in range(live.MOST_WAITING)]
        assert kept[0] > 20 and kept[1] == kept[0] + 1, "the newest are kept"
        assert broadcast.leave(slow)

    asyncio.run(doze())


def test_a_view_that_cannot_be_opened_says_why(tmp_path):
    async def visit(page, path):
        async with websockets.connect(f"{page.url.replace('http', 'ws')}api/games/{path}") as viewer:
            text = json.loads(await viewer.recv())["error"]
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await viewer.recv()
            return text, closed.value.rcvd and closed.value.rcvd.code

    with served(tmp_path, {"fair": Fair()}) as page:
        assert asyncio.run(visit(page, "fair/watch?bad=1")) == ("this view is closed", live.HOPELESS)
        reason, code = asyncio.run(visit(page, "chess/watch"))
        assert reason == "there is no game 'chess' here: the games are fair" and code == live.HOPELESS
        assert get(page, "api/games/fair").json() == {"players": ["somebody"]}
        assert get(page, "api/games/fair/scores").json() == [{"initials": "ABC", "score": 5}]


def test_no_more_live_views_than_a_machine_can_play(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "MOST_VIEWS", 2)

    async def crowd(page):
        async with view_of(page, "play") as one, view_of(page, "play") as two, view_of(page, "play") as three:
            await one.recv(), await two.recv()
            assert "2 games are being watched" in json.loads(await three.recv())["error"]

    with served(tmp_path, {"fair": Fair()}) as page:
        asyncio.run(asyncio.wait_for(crowd(page), 20))


# --- in a process of its own ---


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def is_up(url):
    try:
        return httpx.get(f"{url}api/about").status_code == 200
    except httpx.TransportError:
        return False


def test_beside_a_training_the_page_lives_as_long_as_the_training(tmp_path):
    lines: list[str] = []
    beside = ServerProcess(["dashboard", "--no-browser", "--runs", str(tmp_path), "--port", "0"], lines.append)
    try:
        wait_for(lambda: lines)
        url = lines[0].removeprefix("dashboard: ").partition("#")[0]
        assert is_up(url)
    finally:
        beside.close()
    assert not is_up(url) and len(lines) == 1


def test_the_page_ends_with_a_training_that_was_killed(tmp_path):
    code = (
        "import sys, time\nfrom protege.cli.page import ServerProcess\n"
        f"ServerProcess(['dashboard', '--no-browser', '--runs', {str(tmp_path)!r}, '--port', '0'],"
        " lambda line: print(line, flush=True))\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as training:
        assert training.stdout
        url = training.stdout.readline().removeprefix("dashboard: ").partition("#")[0]
        assert is_up(url)
        training.kill()
    wait_for(lambda: not is_up(url))


def test_a_page_that_cannot_start_is_told_and_stops_nothing(tmp_path):
    lines: list[str] = []
    beside = ServerProcess(["dashboard", "--no-browser", "--runs", str(tmp_path), "--host", "256.0.0.1"], lines.append)
    wait_for(lambda: lines)
    beside.close()
    assert "the page could not be started, training goes on without it" in lines[0]
    assert "no page can be served at 256.0.0.1" in lines[0]


@pytest.mark.parametrize("command", ["dashboard", "watch tempest", "watch echelon", "play"])
def test_the_commands_explain_every_option(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*command.split(), "--help"])
    rows = [line.strip("│ ") for line in capsys.readouterr().out.splitlines()]  # with or without boxes around them
    assert stop.value.code == 0 and any(row.startswith("--port") for row in rows)
    for row, following in zip(rows, [*rows[1:], ""]):
        assert not row.startswith("--") or len(row.split("  ", 1)) == 2 or not following.startswith("--"), row


def test_watching_a_level_that_does_not_exist_is_refused_before_anything_is_served(capsys):
    assert cli.main(["watch", "tempest", "--level", "100", "--no-browser"]) == 2
    assert capsys.readouterr().err == "protege: level must be 1 to 99; got 100\n"


def test_metrics_that_no_learner_has_yet_are_served_like_any_other(tmp_path):
    metrics = (Metric("eval_score", "points", "score", "score"), Metric("replay_size", "", "moves in memory", "replay"))
    with make_run(tmp_path, "one", 0, metrics) as run, served(tmp_path) as page:
        run.log(10, replay_size=5)
        assert [metric["family"] for metric in get(page, "api/runs/one").json()["metrics"]] == ["score", "replay"]


def test_the_vendored_files_say_whose_they_are():
    vendored = {path.name for path in (Path(server.STATIC) / "vendor").iterdir()}
    assert vendored == {
        "uplot-1.6.32.js", "uplot-1.6.32.css", "uplot-LICENSE", "three-0.170.0.module.min.js", "three-LICENSE",
    }  # fmt: skip
