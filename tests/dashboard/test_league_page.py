"""The league page as a person meets it, in a real browser."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protege.games.echelon.agents import contest as echelon
from protege.games.echelon.agents.match import Setting
from protege.games.echelon.page.views import EchelonViews
from protege.games.tempest.agents import contest as tempest
from protege.games.tempest.page.views import TempestViews
from protege.league.league import League, create_league
from protege.league.ledger import Game, Result
from protege.league.matchmaking import MAIN_EXPLOITER
from tests.dashboard.browsing import LONG_PATIENCE_S, chromium, wait_until
from tests.dashboard.serving import served
from tests.dashboard.test_browser import PHONE, visits  # noqa: F401 - a fixture
from tests.league.league_games import add_member, make_checkpoint, make_league

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.needs("chromium", "playwright")]

STRENGTHS = {"random": 1100, "teacher": 1500, "teacher-full": 1560}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One that draws battles although there is no graphics card."""
    with chromium("--enable-unsafe-swiftshader") as opened:
        yield opened


def fill(league: League, folder: Path) -> None:
    """A main agent with three copies and an exploiter that came from the second, five rounds, styles, a recording."""
    main = league.agent("mine")
    for number in range(3):
        entry = league.submit(main.id, make_checkpoint(folder / "now.safetensors", 10.0 + number), 1000 * (number + 1))
        league.promote(entry, "in a test")
    spoiler = league.agent("spoiler", MAIN_EXPLOITER)
    league.report(spoiler.id, [Game(entry.id, 1.0)] * 8)
    old = add_member(league, 5, "old")
    strength = {**STRENGTHS, "old": 1300, **{f"mine@{1000 * n}": 1500 + 120 * n for n in (1, 2, 3)}}
    luck = random.Random(2)
    everybody = [entry for entry in league.entries() if entry.name in strength]
    for number in range(5):
        results = []
        for i, a in enumerate(everybody):
            for b in everybody[i + 1 :]:
                chance = 1 / (1 + 10 ** ((strength[b.name] - strength[a.name]) / 400))
                style = [{"speed": strength[x.name] / 500, "fire_share": strength[x.name] / 4000} for x in (a, b)]
                results.append(
                    Result(
                        a.id, b.id, float(luck.random() < chance), number, detail={"scores": [number, 7]},
                        recording=b"x" if "old" in (a.name, b.name) and number == 4 else None,
                        styles=(style[0], style[1]),
                    )
                )  # fmt: skip
        league.file(results, ends_period=True)
    league.retire(old, "too old")


@pytest.fixture
def page_of_league(tmp_path: Path, visits: Any) -> Iterator[tuple[League, Any]]:  # noqa: F811
    views = {"tempest": TempestViews(tmp_path)}
    with make_league(tmp_path / "ladder") as league, served(tmp_path, views) as served_page:
        fill(league, tmp_path)
        page = visits.open(f"{served_page.url}#/league/ladder")
        page.locator(".standings tbody tr").first.wait_for()
        yield league, page


def names(page: Any) -> list[str]:
    return page.locator(".standings tbody .entry-name").all_inner_texts()  # type: ignore[no-any-return]


def test_everybody_stands_where_the_ratings_put_them(page_of_league, visits):  # noqa: F811
    league, page = page_of_league
    assert set(names(page)) == {entry.name for entry in league.entries()}
    assert names(page)[0].startswith("mine@") and names(page)[-1] == "old", "the retired come last"
    anchor = page.locator(".standings tr", has_text="anchor")
    assert "1,500" in anchor.inner_text() and "fixed" in anchor.inner_text()
    assert "105 rated matches in 5 periods · 8 in training" in page.locator(".league-head").inner_text()
    assert visits.errors == []


def test_ratings_are_drawn_over_time_with_a_key_for_each(page_of_league):
    _, page = page_of_league
    assert int(page.get_attribute(".league-chart", "data-lines")) >= 6
    box = page.locator(".league-chart .u-over").bounding_box()
    assert box["width"] > 300 and box["height"] > 150
    key = page.locator(".league-panel .chart-keys li", has_text="random").locator("b")
    newest = key.inner_text()
    page.mouse.move(box["x"] + 2, box["y"] + 20)
    wait_until(lambda: key.inner_text() != newest)


def test_the_matrix_says_who_beats_whom_and_how_sure_that_is(page_of_league):
    league, page = page_of_league
    cells = page.locator(".payoff tbody tr", has_text="mine@3000").locator("td[title]")
    told = [cells.nth(i).get_attribute("title") for i in range(cells.count())]
    said = next(text for text in told if "against random" in text)
    best, worst = league.find("mine@3000"), league.find("random")
    share = round(100 * league.payoffs(best.id)[worst.id].score / 5)
    assert said.startswith(f"mine@3000 against random: {share} % of 5 games, ")
    assert re.search(r"\d+ to \d+ % at 95 %, 0 drawn", said)
    colours = "els => new Set(els.map(e => getComputedStyle(e).backgroundColor)).size"
    assert page.eval_on_selector_all(".payoff tbody td[title]", colours) >= 4


def test_the_lineage_shows_what_came_from_what(page_of_league):
    _, page = page_of_league
    child = page.locator(".lineage li", has=page.locator("> button", has_text="mine@2000")).last
    assert child.locator("ul button").all_inner_texts() == ["mine@3000", "mine"], "who learns goes on from its newest"
    child.locator("ul button").first.click()
    wait_until(lambda: page.locator(".league-entry h2").inner_text() == "mine@3000")
    assert "trained on from\nmine@2000" in page.locator(".facts").inner_text()


def test_an_entry_shows_its_style_and_its_latest_matches(page_of_league):
    league, page = page_of_league
    page.click(".standings tr:has-text('old')")
    wait_until(lambda: page.locator(".league-entry h2").inner_text() == "old")
    assert page.url.endswith(f"#/league/ladder?entry={league.find('old').id}")
    speed = page.locator('.figure[data-figure="speed"]')
    assert speed.locator("output").inner_text() == "2.6" and speed.locator(".other").count() == 6
    assert page.locator('.figure[data-figure="fire_share"] output').inner_text() == "32.5\u202f%"
    assert "Plays most like random" in page.locator(".alike").inner_text()
    film = page.locator(".matches .watch").last.get_attribute("href")
    assert film.startswith("#/tempest/live?kind=film&player=old&league=ladder")


def test_a_recorded_battle_is_one_click_away(tmp_path, visits):  # noqa: F811
    duel = echelon.signature(Setting("1v1", (40, 40), 40))
    with create_league(tmp_path / "duels", duel, echelon.SCRIPTED, echelon.ANCHOR) as league:
        hard, easy = (league.opponent(league.find(name)) for name in ("hard", "easy"))
        league.file(echelon.Contest(duel).play(hard, easy, range(1), record=1), ends_period=True)
    with served(tmp_path, {"echelon": EchelonViews(tmp_path)}) as served_page:
        page = visits.open(f"{served_page.url}#/league/duels?entry={easy.id}")
        page.set_default_timeout(1000 * LONG_PATIENCE_S)
        for link in (".matches .watch", ".standings tr:has-text('hard') .row-watch"):
            watch = page.locator(link).first
            assert re.fullmatch(r"#/echelon/battle\?league=duels&file=\d+\.rec", watch.get_attribute("href"))
            watch.click()
            page.locator(".battle-view[data-ready]").wait_for()
            assert page.locator(".race-name").all_inner_texts() == ["hard", "easy"]
            page.go_back()
        wait_until(lambda: page.locator(".standings .row-watch").count() == 2)  # nobody else has played


def test_a_tempest_game_of_a_match_is_one_click_away(tmp_path, visits):  # noqa: F811
    short = tempest.signature(tempest.Setting(max_frames=300))
    with create_league(tmp_path / "short", short, tempest.SCRIPTED, tempest.ANCHOR) as league:
        chance, teacher = (league.opponent(league.find(name)) for name in ("random", "teacher"))
        league.file(tempest.Contest(short).play(chance, teacher, range(1)), ends_period=True)
    with served(tmp_path, {"tempest": TempestViews(tmp_path)}) as served_page:
        page = visits.open(f"{served_page.url}#/league/short?entry={chance.id}")
        page.set_default_timeout(1000 * LONG_PATIENCE_S)
        page.locator(".matches .watch").click()
        wait_until(lambda: int(page.get_attribute(".film", "data-tick") or 0) > 20, LONG_PATIENCE_S)


def test_an_answer_that_was_lost_is_made_good_by_the_next(page_of_league):
    _, page = page_of_league
    page.route("**/api/leagues**", lambda route: route.abort())
    page.locator(".league-view .stage-note").wait_for()
    assert page.locator(".standings").is_hidden()
    page.unroute("**/api/leagues**")
    page.locator(".standings").wait_for()
    assert page.locator(".league-view .stage-note").is_hidden()


def test_new_matches_appear_by_themselves(page_of_league):
    league, page = page_of_league
    one, other = league.find("random"), league.find("teacher-full")
    league.file([Result(one.id, other.id, 1.0, 50 + number) for number in range(40)], ends_period=True)
    page.locator(".league-head", has_text="145 rated matches in 6 periods").wait_for(timeout=20_000)


def test_everything_can_be_reached_without_a_mouse(page_of_league):
    _, page = page_of_league
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "teacher-full":
            break
    page.keyboard.press("Enter")
    wait_until(lambda: page.locator(".league-entry h2").inner_text() == "teacher-full")
    assert page.evaluate("document.activeElement.textContent") == "teacher-full", "the focus stays where it was"


def test_leagues_are_chosen_and_a_damaged_one_is_explained(page_of_league, tmp_path):
    _, page = page_of_league
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "league.sqlite").write_bytes(b"nothing of the kind" * 50)
    page.evaluate("location.hash = '/league/broken'")
    page.locator(".stage-note", has_text="is damaged (file is not a database)").wait_for()
    page.evaluate("location.hash = '/league/ladder'")
    page.locator(".standings tbody tr").first.wait_for()
    assert "broken" in page.locator(".league-head select").inner_text()


def test_the_page_fits_a_phone_and_both_themes(page_of_league, visits, tmp_path):  # noqa: F811
    _, page = page_of_league
    page.set_viewport_size(PHONE)
    page.wait_for_timeout(300)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.click("#theme")
    page.wait_for_timeout(200)
    assert page.locator(".league-chart canvas").is_visible() and visits.errors == []
