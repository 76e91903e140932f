"""The page as a person meets it, in a real browser: charts, zoom, live play, playing, steering, a lost connection."""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from protege.dashboard import server
from protege.dashboard.live import Page, Tab
from protege.games.tempest.page.human import HumanGame
from protege.games.tempest.page.live import LiveGames
from protege.games.tempest.page.views import TempestViews
from protege.runs.metrics import Card, Metric
from protege.runs.run import create_run, open_run
from protege.train.controls import Controls, Scheduled
from tests.cli.terminals import Terminal
from tests.dashboard.browsing import LONG_PATIENCE_S, Visits, chromium, visiting, wait_until
from tests.dashboard.serving import METRICS, Fair, log, make_run, served
from tests.games.tempest.task.scenes import save_rainbow

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.needs("chromium", "playwright")]

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def visits(browser: Any) -> Iterator[Visits]:
    with visiting(browser) as visits:
        yield visits


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Any]:
    """A run in training with 50 turns of values and every switch there is, and its page."""
    with make_run(tmp_path, "one") as run, served(tmp_path, {"tempest": TempestViews(tmp_path)}) as page:
        run.show_controls(Controls(1e-3, dict.fromkeys(("attention", "replay", "flush"), str)).view())
        yield run, page


def chart(page: Any, family: str) -> Any:
    return page.locator(f'.chart[data-family="{family}"]')


def points(page: Any, family: str) -> int:
    """How many values a small chart shows."""
    return int(chart(page, family).get_attribute("data-points") or 0)


def side(page: Any, name: str) -> float:
    """Where the big chart begins or ends."""
    return float(page.locator("dialog.big").get_attribute(f"data-{name}") or -1)


def drawn(page: Any, canvas: str) -> int:
    """How many pictures a game has shown."""
    return int(page.locator(canvas).first.get_attribute("data-drawn") or 0)


def wait_for_points(page: Any, family: str, least: int) -> None:
    wait_until(lambda: points(page, family) >= least, LONG_PATIENCE_S)


def wait_for_pictures(page: Any, canvas: str, least: int) -> None:
    wait_until(lambda: drawn(page, canvas) >= least, LONG_PATIENCE_S)


# --- a real training, from its first frame to the end that the page asks for ---


def training(folder: Path) -> Terminal:
    """`protege train` as a person starts it, in a terminal."""
    words = ["train", "tempest", "--preset", "smoke", "--minutes", "15", "--compare", "0", "--run", "pupil"]
    return Terminal(sys.executable, "-m", "protege.cli", *words, "--runs", str(folder))


def test_a_training_is_watched_and_steered_to_its_end(tmp_path, visits):
    with training(tmp_path) as terminal:
        link = terminal.wait_for(r"dashboard: (\S+)\s", 60)[1]
        page = visits.open(link)
        page.set_default_timeout(1000 * LONG_PATIENCE_S)
        assert "token" not in page.url, "the token is taken out of sight"
        # Every declared family has a chart, and they fill while the training goes on.
        families = {metric.family for metric in open_run("pupil", tmp_path).metrics.declared()}
        for family in families:
            chart(page, family).wait_for()
        for family in ("loss", "speed", "reward of a life", "value range", "score"):
            wait_for_points(page, family, 2)
        before = points(page, "loss")
        wait_until(lambda: points(page, "loss") > before)
        assert page.locator(".gauge").count() == 4 and "× teacher" in page.locator(".evaluation").inner_text()
        # The pupil plays, with the weights that were saved last.
        moves(page, ".preview canvas")
        # What the buttons say is done.
        page.click("button[data-command=save]")
        page.locator(".events li", has_text="command").filter(has_text="save").wait_for()
        exams = points(page, "score")
        page.click("button[data-command=evaluate]")
        wait_until(lambda: points(page, "score") > exams, LONG_PATIENCE_S)
        # What is switched in the page shows in the console, and the other way round.
        steer_from_the_page(page, terminal)
        steer_from_the_console(page, terminal)
        page.click("button[data-command=stop]")
        assert terminal.process.poll() is None, "stopping takes a second click"
        page.click("button[data-command=stop]")
        assert terminal.process.wait(timeout=60) == 0, terminal.text()
        assert open_run("pupil", tmp_path).status() == "stopped"
        assert visits.hosts == {re.sub(r"^http://([^/]*)/.*", r"\1", link)}, "nothing leaves the host"
        assert not [error for error in visits.errors if "WebSocket" not in error and "ERR_" not in error]


def steer_from_the_page(page: Any, terminal: Terminal) -> None:
    page.fill("input[data-command=epsilon]", "5")
    page.keyboard.press("Enter")
    terminal.wait_for("epsilon 5 %, fixed")
    page.click("[data-step=epsilon-up]")
    terminal.wait_for("epsilon 6 %, fixed")
    page.locator(".steer-last", has_text="epsilon 6 %, fixed").wait_for()
    assert page.input_value("input[data-command=epsilon]") == "6"
    page.locator('.gauge[data-gauge="exploration"]', has_text="6\u202f%*").wait_for()
    page.check("input[data-command=teacher_off]")
    terminal.wait_for("teacher off: teacher 0 %")
    page.click("[data-step=learning_rate-up]")
    terminal.wait_for("learning rate 0.002 at its peak, 2 times the setting")


def steer_from_the_console(page: Any, terminal: Terminal) -> None:
    terminal.press("t", "learning off")
    page.locator("input[data-command=learning]:not(:checked)").wait_for()
    terminal.press("o", "teacher off ends")
    page.locator("input[data-command=teacher_off]:not(:checked)").wait_for()
    terminal.press("P", "epsilon pulse on")
    page.locator("input[data-command=pulse]:checked").wait_for()
    assert page.locator(".steer-summary").text_content() == "changed: Learning rate, Learning, Epsilon, Pulse"
    terminal.press("l", "learning rate 0.001 at its peak")
    terminal.press("t", "learning on")
    terminal.press("5", "epsilon back on schedule")
    terminal.press("P", "epsilon pulse off")
    wait_until(lambda: page.locator(".steer-summary").text_content() == "")
    assert page.input_value("input[data-command=epsilon]") == ""


def moves(page: Any, canvas: str) -> None:
    """The picture changes, again and again, however busy the machine is."""
    wait_for_pictures(page, canvas, 5)
    seen = set()

    def has_changed() -> bool:
        seen.add(page.evaluate(f"document.querySelector('{canvas}').toDataURL()"))
        return len(seen) >= 3

    wait_until(has_changed)


# --- charts ---


def test_the_page_loads_without_an_error_and_asks_nobody_else(one, visits, monkeypatch):
    _, served_page = one
    monkeypatch.setattr(server, "HEARTBEAT_SECONDS", 0.2)  # so that every view hears some
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.2)
    page = visits.open(served_page.url)
    chart(page, "loss").wait_for()
    for view in ("#/tempest/live?player=teacher", "#/tempest/play", "#/"):
        page.goto(served_page.url + view)
        page.wait_for_timeout(700)
    assert visits.errors == [] and visits.hosts == {served_page.url.split("/")[2]}


def test_values_that_are_logged_appear_by_themselves(one, visits):
    run, served_page = one
    page = visits.open(served_page.url)
    wait_until(lambda: points(page, "loss") == 50)
    assert "frame 49,000" in page.locator(".run-title").inner_text()
    log(run, range(50, 55))
    run.event("toggle", "teacher off")
    # Values and events are read one after the other: one of them may be a look late.
    page.locator(".run-title", has_text="frame 54,000").wait_for()
    page.locator(".events li", has_text="teacher off").wait_for()
    wait_until(lambda: points(page, "loss") == 55)
    assert page.locator(".events li").first.inner_text().endswith("teacher off")
    assert page.locator(".evaluation-score").inner_text() == "5,000"
    assert (
        "4,950 to 5,050" in page.locator(".evaluation").inner_text()
        and "2.5 × teacher" in page.locator(".evaluation").inner_text()
    )


def test_a_run_of_battles_is_told_in_agent_steps_and_percent(tmp_path, visits):
    success = Metric("success", "fraction", "of held-out battles: won", "evaluation", interval=("worst", "best"))
    ends = [Metric(name, "fraction", "an end of it", "evaluation") for name in ("worst", "best")]
    metrics = [success, *ends]
    with create_run(
        "echelon", "ppo", {}, metrics, name="squad", score="success", unit="agent-step", folder=tmp_path
    ) as run:
        run.log(41_000, success=0.985, worst=0.957, best=0.995)
        with served(tmp_path) as served_page:
            page = visits.open(f"{served_page.url}#/run/squad")
            page.locator(".run-title", has_text="agent-step 41,000").wait_for()
            assert page.locator(".evaluation-score").inner_text().replace("\u202f", " ") == "98.5 %"
            told = page.locator(".evaluation").inner_text().replace("\u202f", " ")
            assert "success, 95.7 % to 99.5 %" in told
            assert "98.5" in page.locator(".runs-list").inner_text()


WHEEL = """export default class {
  constructor(settings) {
    this.element = Object.assign(document.createElement("p"), { className: "wheel", textContent: settings.seed });
  }
  destroy() {}
}"""
LINKS = """import { el } from "/page.js";
export const preview = (run) => ({ element: el("b", { class: "ticket" }, run.name), close() {} });
export const recordingAddress = (run, file) => `#/fair/wheel?seed=${file}`;"""


def test_a_game_brings_its_own_tabs_and_one_without_a_page_has_charts_only(tmp_path, visits):
    static = tmp_path / "static"
    static.mkdir()
    for name, text in {"wheel.js": WHEEL, "links.js": LINKS, "fair.css": ".wheel { color: rgb(1, 2, 3) }"}.items():
        (static / name).write_text(text)
    fair = Fair(Page(static, (Tab("wheel", "Big wheel", "wheel.js"),), ("fair.css",), "links.js"))
    metrics = (Metric("points", "", "score", "score"),)
    for game in ("fair", "plain"):
        settings = {"name": game, "score": "points", "unit": "ride", "folder": tmp_path / "runs"}
        with create_run(game, "pqn", {}, metrics, **settings) as run:
            run.log(10, points=5.0)
            run.recordings.mkdir(exist_ok=True)
            (run.recordings / "one.ride").touch()
    with served(tmp_path / "runs", {"fair": fair, "plain": Fair()}) as served_page:
        page = visits.open(f"{served_page.url}#/run/fair")
        page.locator(".ticket", has_text="fair").wait_for()
        assert page.locator("nav a").all_inner_texts() == ["Training", "Big wheel", "League"]
        assert "ride 10" in page.locator(".run-title").inner_text()
        page.click("text=Watch one.ride")
        page.locator(".wheel", has_text="one.ride").wait_for()
        assert page.evaluate("getComputedStyle(document.querySelector('.wheel')).color") == "rgb(1, 2, 3)"
        assert page.get_attribute("nav [aria-current]", "data-view") == "fair/wheel" and "Big wheel" in page.title()
        page.goto(f"{served_page.url}#/run/plain")
        chart(page, "score").wait_for()
        assert page.locator(".ticket").count() == 0
        page.goto(f"{served_page.url}#/plain/wheel")  # there is none, so the page goes home
        page.wait_for_url("**/#/")


def test_a_resumed_run_goes_back_on_the_page_too(one, visits):
    run, served_page = one
    page = visits.open(served_page.url)
    wait_until(lambda: points(page, "loss") == 50)
    run.rewind(19_000)
    log(run, range(20, 22))
    wait_until(lambda: points(page, "loss") == 22)


def test_a_chart_opens_zooms_by_dragging_and_is_whole_again_after_a_double_click(one, visits):
    _, served_page = one
    page = visits.open(served_page.url)
    chart(page, "loss").click()
    big = page.locator("dialog.big")
    wait_until(lambda: side(page, "to") == 49000)
    box = big.locator(".u-over").bounding_box()
    left, width, middle = box["x"], box["width"], box["y"] + box["height"] / 2
    page.mouse.move(left + 0.2 * width, middle)
    page.mouse.down()
    page.mouse.move(left + 0.6 * width, middle, steps=5)
    page.mouse.up()
    start, end = (float(big.get_attribute(f"data-{side}")) for side in ("from", "to"))
    assert start == pytest.approx(0.2 * 49_000, abs=300) and end == pytest.approx(0.6 * 49_000, abs=300)
    page.wait_for_timeout(600)  # the stretch is read again, and stays
    assert float(big.get_attribute("data-to")) == end
    page.mouse.move(left + 0.5 * width, middle)
    where = big.locator(".where").inner_text()
    assert where.startswith("at frame ") and 18_000 <= int(where[9:].replace(",", "")) <= 21_000
    assert "error of the action values" in big.inner_text(), "what a metric means is said"
    page.mouse.dblclick(left + 0.5 * width, middle)
    wait_until(lambda: side(page, "to") == 49000)
    assert float(big.get_attribute("data-from")) == 0
    page.keyboard.press("Escape")
    big.wait_for(state="detached")
    assert visits.errors == []


def test_everything_about_charts_works_without_a_mouse(one, visits):
    _, served_page = one
    page = visits.open(served_page.url)
    wait_until(lambda: points(page, "loss") == 50)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.family") == "loss":
            break
    page.keyboard.press("Enter")
    big = page.locator("dialog.big")
    wait_until(lambda: side(page, "to") == 49000)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert big.locator(".where").inner_text() == "at frame 48,000"
    page.keyboard.press("+")
    wait_until(lambda: side(page, "from") > 20000)
    page.keyboard.press("0")
    wait_until(lambda: side(page, "from") == 0)
    page.keyboard.press("Escape")
    big.wait_for(state="detached")
    assert page.evaluate("document.activeElement.dataset.family") == "loss", "back where one was"


def test_cursors_of_small_charts_are_linked(one, visits):
    _, served_page = one
    page = visits.open(served_page.url)
    wait_until(lambda: points(page, "loss") == 50)
    place = "e => new DOMMatrix(getComputedStyle(e).transform).m41"
    cursor = chart(page, "speed").locator(".u-cursor-x")
    assert cursor.evaluate(place) <= 0
    box = chart(page, "loss").locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 20)
    wait_until(lambda: cursor.evaluate(place) > 20)


def test_runs_are_compared_in_one_chart_and_taken_along_as_csv(tmp_path, visits):
    with make_run(tmp_path, "one"), make_run(tmp_path, "two", 30), served(tmp_path) as served_page:
        page = visits.open(f"{served_page.url}#/run/one")
        chart(page, "loss").wait_for()  # until then there is nothing to compare with
        page.check('input[aria-label="compare two"]')
        page.wait_for_url("**/#/run/one?compare=two")
        keys = chart(page, "loss").locator(".chart-keys")
        keys.locator("li", has_text="two").wait_for()
        assert keys.inner_text().split() == ["one", "0.02", "two", "0.0333"]
        chart(page, "loss").press("Enter")
        page.locator("dialog.big .big-keys li", has_text="two").wait_for()
        with page.expect_download() as download:
            page.click("text=CSV of two")
        assert Path(download.value.path()).read_text().splitlines()[0] == "step,time,loss"


def test_only_what_a_learner_declares_has_a_gauge_a_card_or_a_chart(tmp_path, visits):
    more = (
        Metric("stored", "moves", "moves in the replay", "replay", card=Card("replay", 2)),
        *(
            Metric(f"by_{who}", "moves", f"played by {who}", "replay", label=who, card=Card("replay holds", 4, "mix"))
            for who in ("teacher", "pupil", "random")
        ),
        Metric("lost", "", "moves that were lost", "dropped items", card=Card("dropped", 3)),
        Metric("advice", "fraction", "of the frames: played by the teacher", "exploration",
               card=Card("teacher", 3, "gauge", 1.0)),
    )  # fmt: skip
    with make_run(tmp_path, "plain"), make_run(tmp_path, "replayed", 5, (*METRICS, *more)) as run:
        run.log(5000, stored=8e6, by_teacher=2e6, by_pupil=5e6, by_random=1e6, lost=3, advice=0.4)
        with served(tmp_path) as served_page:
            page = visits.open(f"{served_page.url}#/run/plain")
            chart(page, "loss").wait_for()
            cards = "els => els.map(e => e.dataset.card)"
            assert page.eval_on_selector_all(".card", cards) == ["frames/s", "web viewers", "time left"]
            assert page.locator(".gauge").count() == 2 and chart(page, "replay").count() == 0
            page.goto(f"{served_page.url}#/run/replayed")
            page.locator(".card", has_text="8M moves").wait_for()
            assert (
                "teacher 25 %, pupil 63 %, random 13 %" in page.locator('.card[data-card="replay holds"]').inner_text()
            )
            assert page.locator('.card[data-card="dropped"]').inner_text().split() == ["dropped", "3"]
            assert page.locator('.gauge[data-gauge="teacher"]').inner_text().split()[:2] == ["40", "%"]


# --- steering ---


def test_without_the_token_one_sees_everything_and_changes_nothing(one, visits):
    run, served_page = one
    page = visits.open(served_page.url)
    page.locator("button[data-command=save]").wait_for()
    assert page.locator("button[data-command]:enabled").count() == 0
    assert page.locator("#trust").inner_text() == "view only"
    status = (
        """() => fetch("/api/runs/one/commands", {method: "POST", body: '{"command": "stop"}'}).then(r => r.status)"""
    )
    assert page.evaluate(status) == 401 and run.commands() == []
    page.click("#trust")
    page.fill("#token-input", "wrong")
    page.click("text=Use it")
    page.locator(".toast.bad").wait_for()
    assert page.locator("button[data-command]:enabled").count() == 0


def test_with_the_token_a_button_reaches_the_run(one, visits):
    run, served_page = one
    page = visits.open(served_page.url)
    page.click("#trust")
    page.fill("#token-input", served_page.link())  # the whole link will do
    page.click("text=Use it")
    page.click("button[data-command=evaluate]:enabled")
    wait_until(lambda: [command.name for command in run.commands()] == ["evaluate"])
    page.reload()
    page.locator("button[data-command=save]:enabled").wait_for()  # this window keeps it
    other = visits.open(served_page.url)
    other.locator("button[data-command=save]:disabled").wait_for()  # and no other


def test_switches_are_seen_by_everybody_and_changed_by_whoever_has_the_token(one, visits):
    run, served_page = one
    viewer, steering = visits.open(served_page.url), visits.open(served_page.link())
    steering.locator("input[data-command=greedy]:enabled").wait_for()
    assert viewer.locator(".steer :is(input, button):enabled").count() == 0
    # Every kind of control sends what the keys send.
    sent: list[Any] = []

    def came(number: int) -> bool:
        sent.extend(run.commands())
        return len(sent) == number

    def type_a_rate() -> None:
        steering.fill("input[data-command=learning_rate]", "0.004")
        steering.keyboard.press("Enter")

    for number, act in enumerate(
        (
            lambda: steering.check("input[data-command=greedy]"),
            lambda: steering.click("[data-step=teacher-down]"),
            lambda: steering.click("[aria-label='Epsilon back on schedule']"),
            type_a_rate,
            lambda: steering.click("button[data-command=replay]"),
        ),
        1,
    ):
        act()
        wait_until(partial(came, number))
    assert [(command.name, command.arguments) for command in sent] == [
        ("greedy", {"on": True}), ("teacher", {"step": -1}), ("epsilon", {"schedule": True}),
        ("learning_rate", {"value": 0.004}), ("replay", {}),
    ]  # fmt: skip
    # How they stand is what the run says, once it has said so.
    controls = Controls(1e-3)
    for command in sent:
        answer = controls.obey(command.name, command.arguments, Scheduled(0, 0.02, 0.3))
        run.show_controls(controls.view())
        run.event("command", f"{command.name}: {answer}")
    for page in (viewer, steering):
        page.locator(".steer-last", has_text="replay means nothing to this learner").wait_for()
        assert page.is_checked("input[data-command=greedy]") and not page.is_checked("input[data-command=pulse]")
        assert page.input_value("input[data-command=teacher]") == "25"
        assert page.input_value("input[data-command=learning_rate]") == "0.004"
        assert page.locator(".steer-summary").text_content() == "changed: Learning rate, Greedy, Teacher"
        assert page.locator("button[data-command=replay]").count() == 0, "this learner has no use for it"


def test_a_number_out_of_range_is_not_sent_and_one_being_typed_is_left_alone(one, visits):
    run, served_page = one
    page = visits.open(served_page.link())
    page.locator("input[data-command=epsilon]:enabled").wait_for()
    page.fill("input[data-command=epsilon]", "150")
    page.keyboard.press("Enter")
    page.fill("input[data-command=teacher]", "7")
    log(run, range(50, 52))
    wait_until(lambda: points(page, "loss") == 52)
    assert page.input_value("input[data-command=teacher]") == "7" and run.commands() == []
    page.keyboard.press("Tab")
    wait_until(lambda: [command.arguments for command in run.commands()] == [{"value": 0.07}])


def test_a_switch_that_the_run_does_not_confirm_goes_back(one, visits):
    run, served_page = one
    page = visits.open(served_page.link())
    page.check("input[data-command=pulse]:enabled")
    assert page.is_checked("input[data-command=pulse]")
    turns = iter(range(50, 10_000))

    def news() -> bool:
        turn = next(turns)
        log(run, range(turn, turn + 1))
        time.sleep(0.3)
        return not page.is_checked("input[data-command=pulse]")

    wait_until(news)


# --- live play ---


def test_a_grid_of_games_is_watched_and_paused(one, visits):
    _, served_page = one
    page = visits.open(f"{served_page.url}#/tempest/live?player=teacher&games=4&level=9")
    moves(page, ".stage canvas:nth-child(4)")
    assert page.locator(".control").inner_text() == "teacher"
    assert re.fullmatch(r"(stay|(left|right) \d+)( \+ fire)?( \+ zap)?", page.locator(".action").inner_text())
    page.click("text=Pause")
    page.wait_for_timeout(300)
    before = drawn(page, ".stage canvas")
    page.wait_for_timeout(500)
    assert drawn(page, ".stage canvas") == before
    page.click("text=Go on")
    wait_until(lambda: drawn(page, ".stage canvas") > before)


def test_a_rainbow_pupils_distributions_and_attention_are_shown(tmp_path, visits):
    pupil = str(save_rainbow(tmp_path))
    with served(tmp_path, {"tempest": TempestViews(tmp_path, (pupil,))}) as served_page:
        page = visits.open(f"{served_page.url}#/tempest/live?{urlencode({'player': pupil, 'level': 9})}")
        moves(page, ".stage canvas")
        hills = page.locator(".values .probabilities")
        hills.nth(4).wait_for()
        assert re.match("returns from −?-?100 to 100", hills.first.get_attribute("title"))
        page.locator(".gaze input:checked").wait_for(timeout=60_000)  # enemies have come

        def attention() -> int:
            return int(page.evaluate("document.querySelector('.stage canvas').dataset.attention"))

        wait_until(lambda: attention() > 0, 60)
        page.click(".gaze")
        wait_until(lambda: attention() == 0)


def test_an_evaluation_game_is_played_paused_stepped_and_scrubbed(one, visits):
    _, served_page = one
    page = visits.open(f"{served_page.url}#/tempest/live?player=teacher&kind=film&seed=1&number=2")

    def tick() -> int:
        return int(page.get_attribute(".film", "data-tick") or 0)

    wait_until(lambda: tick() > 20, LONG_PATIENCE_S)
    page.click("[aria-label='Play or pause']")
    page.locator("[aria-label='Play or pause']", has_text="▶").wait_for()
    before = tick()
    page.click("[aria-label='One tick on']")
    wait_until(lambda: tick() == before + 1)
    page.keyboard.press("Escape")
    page.click(".stage canvas")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    wait_until(lambda: tick() == before - 1)
    page.fill(".film input[type=range]", "300")
    wait_until(lambda: tick() == 300)


def test_a_player_that_is_not_there_is_explained(one, visits):
    _, served_page = one
    page = visits.open(f"{served_page.url}#/tempest/live?player=nobody")
    page.locator(".stage-note", has_text="there is no player 'nobody' here").wait_for()


# --- playing ---


def lane(page: Any) -> int:
    return int(page.get_attribute(".play-view", "data-lane"))


def steady_lane(page: Any) -> int:
    """Where the ship is once it has done all that it was told."""
    seen = [lane(page)]
    while len(seen) < 4 or len(set(seen[-4:])) > 1:  # on a busy machine a turn can take a while to arrive
        page.wait_for_timeout(150)
        seen.append(lane(page))
    return seen[-1]


@pytest.fixture
def my_game(one, visits) -> Any:
    """A game of one's own that has just begun: for some seconds nothing can harm the ship."""
    _, served_page = one
    page = visits.open(f"{served_page.url}#/tempest/play")
    page.locator(".start").wait_for(timeout=1000 * LONG_PATIENCE_S)
    page.click(".start")
    page.wait_for_selector('.play-view[data-state="playing"]')
    return page


def test_a_persons_key_press_moves_the_ship(my_game):
    start = lane(my_game)
    my_game.keyboard.down("ArrowRight")
    wait_until(lambda: 2 <= (lane(my_game) - start) % 16 <= 8)
    my_game.keyboard.up("ArrowRight")
    my_game.keyboard.down("a")
    wait_until(lambda: 0 <= (start - lane(my_game)) % 16 <= 8)
    my_game.keyboard.up("a")


def test_a_persons_mouse_moves_the_ship(my_game):
    box = my_game.locator(".mine canvas").bounding_box()
    my_game.mouse.move(box["x"] + 100, box["y"] + 100)
    start = steady_lane(my_game)
    my_game.mouse.move(box["x"] + 260, box["y"] + 100, steps=8)  # 160 pixels, 88 of 256 around the tube
    wait_until(lambda: (lane(my_game) - start) % 16 in (5, 6))


def test_a_persons_wheel_moves_the_ship(my_game):
    my_game.mouse.move(400, 400)
    start = steady_lane(my_game)
    my_game.mouse.wheel(0, -200)  # two notches, a lane each
    wait_until(lambda: (start - lane(my_game)) % 16 == 2)


def test_a_game_waits_while_it_is_paused(my_game):
    my_game.keyboard.press("p")
    my_game.wait_for_selector('.play-view[data-state="paused"]')
    start = lane(my_game)
    my_game.keyboard.down("ArrowRight")
    my_game.wait_for_timeout(400)
    my_game.keyboard.up("ArrowRight")
    assert lane(my_game) == start
    my_game.click("text=Go on")
    my_game.wait_for_selector('.play-view[data-state="playing"]')


def test_a_good_game_ends_in_the_table(one, visits, monkeypatch):
    _, served_page = one
    monkeypatch.setattr(HumanGame, "rate", 1000.0)
    page = visits.open(f"{served_page.url}#/tempest/play")
    page.locator(".start").wait_for(timeout=1000 * LONG_PATIENCE_S)
    page.click(".start")
    page.keyboard.down(" ")
    page.keyboard.down("ArrowRight")
    page.wait_for_selector('.play-view[data-state="entering"]', timeout=1000 * LONG_PATIENCE_S)  # a whole game
    page.fill(".initials", "ace")
    page.keyboard.press("Enter")
    page.locator(".scores tr", has_text="ACE").wait_for()
    score = int(page.get_attribute(".play-view", "data-score"))
    assert f"{score:,}" in page.locator(".scores").inner_text() and score > 0


# --- the page itself ---


def test_a_lost_connection_is_said_and_comes_back_by_itself(tmp_path, visits):
    with ExitStack() as stack, make_run(tmp_path, "one") as run:
        first = stack.enter_context(served(tmp_path))
        port = int(first.url.rstrip("/").rpartition(":")[2])
        page = visits.open(first.url)
        wait_until(lambda: points(page, "loss") == 50)
        stack.close()
        page.locator("#connection", has_text="connection lost, trying again").wait_for()
        log(run, range(50, 60))
        with served(tmp_path, port=port) as second:
            assert second.url == first.url
            page.locator("#connection", has_text=re.compile("^live$")).wait_for()
            wait_until(lambda: points(page, "loss") == 60)
            page.locator(".toast", has_text="Connected again").wait_for()


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_is_wider_than_a_phone(one, visits, width):
    _, served_page = one
    page = visits.open(served_page.url, {"width": width, "height": 700}, has_touch=True)
    wide = "document.documentElement.scrollWidth > innerWidth"
    for view in (
        "#/run/one",
        "#/tempest/live?player=teacher&games=4",
        "#/tempest/live?player=teacher&kind=film",
        "#/tempest/play",
    ):
        page.goto(served_page.url + view)
        page.wait_for_timeout(800)
        assert not page.evaluate(wide), view
    page.goto(f"{served_page.url}#/run/one")
    page.locator(".steer summary").tap()
    page.locator("input[data-command=epsilon]").wait_for()
    assert not page.evaluate(wide)
    chart(page, "score").tap()
    page.locator("dialog.big canvas").wait_for()
    assert not page.evaluate(wide) and not page.evaluate("document.querySelector('.big').scrollWidth > innerWidth")


def test_dark_and_light_follow_the_system_until_one_is_chosen(one, visits):
    _, served_page = one
    page = visits.open(served_page.url, color_scheme="light")
    back = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(back) == "rgb(243, 244, 248)"
    page.emulate_media(color_scheme="dark")
    wait_until(lambda: page.evaluate(back) == "rgb(7, 8, 13)")
    page.click("#theme")
    page.reload()
    assert page.evaluate(back) == "rgb(243, 244, 248)"


def heap(page: Any) -> tuple[float, float]:
    """Bytes and elements that are alive after the rubbish is taken out: the least of several looks, as a page that
    is busy always holds some pictures that are just on their way."""
    tools = page.context.new_cdp_session(page)
    looks = []
    for _ in range(8):
        tools.send("HeapProfiler.collectGarbage")
        looks.append((tools.send("Runtime.getHeapUsage")["usedSize"], tools.send("Memory.getDOMCounters")["nodes"]))
        time.sleep(0.1)
    tools.detach()
    return min(used for used, _ in looks), min(nodes for _, nodes in looks)


def test_the_heap_is_flat_over_ten_accelerated_minutes(tmp_path, visits, monkeypatch):
    """Six hundred news, as many as come in ten minutes, and the pictures of as long a game, many times faster."""
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr("protege.dashboard.feeds.REMEMBERED_S", 0.0)
    monkeypatch.setattr(LiveGames, "rate", 20 * LiveGames.rate)
    with make_run(tmp_path, "one") as run, served(tmp_path, {"tempest": TempestViews(tmp_path)}) as served_page:
        charts, game = visits.open(served_page.url), visits.open(f"{served_page.url}#/tempest/live?player=teacher")
        wait_until(lambda: points(charts, "loss") == 50)
        moves(game, ".stage canvas")
        sizes = []
        for minute in range(10):
            start = drawn(game, ".stage canvas")
            for turn in range(60):
                first = 50 + 20 * (60 * minute + turn)
                log(run, range(first, first + 20))
                time.sleep(0.02)
            last = f"{1000 * (first + 19):,}"
            charts.locator(".run-title", has_text=f"frame {last}").wait_for()
            wait_for_pictures(game, ".stage canvas", start + 27 * 60)
            if minute in (2, 9):  # by then everything there is to build has been built
                sizes.append([heap(charts), heap(game)])
        assert points(charts, "loss") <= 700
    for before, after in zip(*sizes, strict=True):  # a hundred bytes kept of each picture would be a megabyte
        assert after[0] < 1.1 * before[0] + 500_000 and after[1] < 1.1 * before[1] + 50, sizes
