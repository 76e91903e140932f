"""`protege league`: ratings of players by matches between them, and what learners play against."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final

from tyro.conf import Positional, UseAppendAction, arg

from protege import ProtegeError
from protege.cli.options import RunsOptions, extended, given
from protege.cli.tables import count, date, number, print_json, print_table
from protege.games import BUILT_IN, Command, Contest, Contests, Game, NoSettings, find_game, games
from protege.league.league import League, copy_league, create_league, league_names, open_league
from protege.league.ledger import CANDIDATE, MEMBER, Entry, LeagueError, Result
from protege.league.matchmaking import Rules
from protege.league.standings import distances, payoff, recent_matches, styles, table
from protege.machine import usable_cores
from protege.runs.run import checked_name, list_runs, open_run, runs_folder
from protege.statistics import wilson


@dataclass(frozen=True, kw_only=True)
class LeagueOptions(RunsOptions):
    """A league is named by its folder, by its name in the runs folder, or, if built in, by its game's."""

    league: Positional[str]  # the league


@dataclass(frozen=True, kw_only=True)
class LeagueInit(RunsOptions):
    """Begin a league: an empty one of scripted players, or a copy of another."""

    league: Positional[str]  # a name for it, to be kept among the runs, or the path of a folder
    game: str = ""  # what is played; its own settings are listed by "protege league init NAME --game GAME --help"
    copy: str | None = None  # go on with a copy of this league, such as one that comes with Protege
    limit: int = 20  # most learned members; beyond it the lowest-rated retire
    gate_games: int = 200  # matches against the best member that a promotion takes
    recordings: int = 3  # recorded matches that are kept of each player, the newest, where the game records any


def init_options(words: Sequence[str]) -> type[LeagueInit]:
    """Begin a league: an empty one of scripted players, or a copy of another."""
    place = given(words, "--game")
    settings = _contests(find_game(place)).settings if place else NoSettings
    fields: list[Any] = [("settings", Annotated[settings, arg(name="")], field(default=settings()))]
    return extended(LeagueInit, str(LeagueInit.__doc__), fields)


def run_init(command: Any) -> int:
    is_path = Path(command.league).name != command.league
    folder = Path(command.league) if is_path else runs_folder(command.runs) / checked_name(command.league)
    if command.copy:
        with open_league(command.copy, command.runs) as source:
            league = copy_league(source, folder)
    elif not command.game:
        rated = ", ".join(name for name, game in games().items() if game.contests)
        raise ProtegeError(f"say what is played with --game ({rated}), or which league to copy with --copy")
    else:
        rules = Rules(limit=command.limit, gate_games=command.gate_games, recordings=command.recordings)
        contests = _contests(find_game(command.game))
        signature = contests.signature(command.settings)
        league = create_league(folder, signature, contests.scripted, contests.anchor, rules)
    with league:
        entries = league.entries()
        print(f"{folder}: a league of {league.game} with {count(entries, 'player')}, {league.anchor.name} at 1500")
        return print_json(command, {"league": str(folder), "game": league.game, "entries": len(entries)})


def _contests(game: Game) -> Contests:
    if game.contests is None:
        raise ProtegeError(f"{game.title} has no league: two players of it cannot meet")
    return game.contests()


def _game(league: League, place: str) -> Game:
    """The game of a league: a built-in one, or the user's own, which a league's file must not name."""
    if not place and league.game not in BUILT_IN:
        raise ProtegeError(
            f"league {league.name} plays {league.game!r}, which is not among {', '.join(BUILT_IN)}: "
            "say where it is with --game package.module:GAME or a file"
        )
    found = find_game(place or league.game)
    if found.name != league.game:
        raise ProtegeError(f"league {league.name} plays {league.game}, not {found.name}")
    return found


def _contest(league: League, place: str, threads: int, games: int = 1) -> Contest:
    """Whoever plays this league's matches, if this version of Protege still plays them alike."""
    contests = _contests(_game(league, place))
    try:
        found = contests.open(league.signature, threads=threads or usable_cores(), games=games)
    except (KeyError, TypeError, ValueError) as error:
        raise ProtegeError(
            f"league {league.name} does not say what its matches are like ({error}): begin another league"
        ) from error
    league.require(found.signature)
    return found


@dataclass(frozen=True, kw_only=True)
class LeagueAdd(LeagueOptions):
    """Take a copy of a trained player into a league, as a candidate."""

    player: Positional[str]  # the name of a run (its best), the path of a checkpoint, or champion
    name: str = ""  # what to call it; without it, a name made from its contents
    member: bool = False  # as a member at once, without the matches that "protege league promote" requires
    parent: str | None = None  # the entry whose training it continues
    game: str = ""  # where a game of your own is, as package.module:GAME or a file


def run_add(command: LeagueAdd) -> int:
    with open_league(command.league, command.runs) as league:
        parent = league.find(command.parent).id if command.parent else None
        path = _game(league, command.game).players().checkpoint_of(command.player, command.runs)
        if path is None:
            path = open_run(command.player, command.runs).best  # raises, and says which runs have similar names
        run = command.player if command.player in (run.name for run in list_runs(command.runs)) else ""
        _contest(league, command.game, 1).check(str(path))
        kind = MEMBER if command.member else CANDIDATE
        before = {entry.id for entry in league.entries()}
        entry = league.add(path, name=command.name, run=run, parent=parent, kind=kind)
        assert entry.hash is not None
        is_new = entry.id not in before
        if is_new:
            print(f"{entry.name}: {entry.kind} of league {league.name}, a copy of {path} ({entry.hash[:12]})")
        else:
            print(f"league {league.name} has these contents already, as {entry.name}, {entry.kind}: nothing was added")
            if entry.kind != MEMBER:
                print(f"Make it a member:   protege league promote {command.league} {entry.name}")
        return print_json(command, {"league": league.name, "is_new": is_new, **_flat(entry)})


def _flat(entry: Entry) -> dict[str, Any]:
    return asdict(entry) | entry.rating._asdict() | {"conservative": entry.rating.conservative}


@dataclass(frozen=True, kw_only=True)
class LeagueList(RunsOptions):
    """List the players of a league by rating, or the leagues there are."""

    league: Positional[str] = ""  # the league; without it, all of them
    retired: bool = False  # also those that have left
    json: bool = False  # also print one flat JSON object for each, and last one for all of them


def run_list(command: LeagueList) -> int:
    if not command.league:
        rows, found = [], []
        for name in league_names(command.runs):
            try:
                with open_league(name, command.runs) as league:
                    figures = {"game": league.game, "entries": len(league.entries()), **league.counts()}
                    found.append({"league": name, **figures, "folder": str(league.folder)})
                    rows.append([name, *map(str, figures.values())])
            except LeagueError as problem:
                rows.append([name, str(problem)])
        head = ("league", "game", "players", "matches", "rated", "pending", "periods")
        print_table(count(rows, "league"), head, rows, (2, 3, 4, 5, 6))
        return print_json(command, *found, {"leagues": len(found)})
    with open_league(command.league, command.runs) as league:
        listed = table(league, retired=command.retired)
        _print_table(league, listed)
        about = {"league": league.name, "game": league.game, "entries": len(listed)}
        return print_json(command, *listed, about | league.counts())


def _print_table(league: League, rows: Sequence[dict[str, Any]]) -> None:
    counts = league.counts()
    lines = [
        [
            row["name"], row["kind"] + (f", {row['role']}" if row["role"] else ""), f"{row['rating']:.0f}",
            "anchor" if row["is_anchor"] else f"± {2 * row['deviation']:.0f}", f"{row['conservative']:.0f}",
            "" if row["strength"] is None else f"{row['strength']:.0f} ± {2 * row['strength_deviation']:.0f}",
            f"{row['games']:,}",
        ]
        for row in rows
    ]  # fmt: skip
    periods = count(range(counts["periods"]), "period")
    title = f"League {league.name} of {league.game}: {counts['rated']:,} rated matches in {periods}"
    head = ("player", "kind", "rating", "95 %", "at least", "by all matches", "games")
    print_table(title, head, lines, (2, 3, 4, 5, 6))


@dataclass(frozen=True, kw_only=True)
class LeagueMatch(LeagueOptions):
    """Let two players of a league meet, on maps that they have not played yet; both are rated by it."""

    first: Positional[str]  # a player of it, by name or by the beginning of its hash
    second: Positional[str]  # another one
    games: int = 20  # matches; an even number where each map is played from both sides
    record: int = 1  # maps whose matches are recorded and looked at for the style report, where the game records any
    threads: int = 0  # threads that play; 0 for one per core
    game: str = ""  # where a game of your own is, as package.module:GAME or a file


def run_match(command: LeagueMatch) -> int:
    with open_league(command.league, command.runs) as league:
        first, second = league.find(command.first), league.find(command.second)
        contest = _contest(league, command.game, command.threads, command.games)
        results = _meet(league, contest, first, second, command.games, command.record)
        league.close_period()
        score = sum(result.score for result in results)
        low, high = wilson(score, len(results))
        after = [league.by_id(entry.id) for entry in (first, second)]
        print(
            f"{first.name} scores {score:g} of {len(results)} against {second.name}: {score / len(results):.1%} "
            f"({low:.1%} to {high:.1%})"
        )
        for before, now in zip((first, second), after):
            print(f"{now.name}: {before.rating.rating:.0f} -> {now.rating.rating:.0f} ± {2 * now.rating.deviation:.0f}")
        figures = {"first": first.name, "second": second.name, "games": len(results), "score": score}
        figures |= {"rate": score / len(results), "rate_low": low, "rate_high": high}
        figures |= {f"rating_{side}": entry.rating.rating for side, entry in zip(("first", "second"), after)}
        return print_json(command, figures)


def _meet(league: League, contest: Contest, first: Entry, second: Entry, games: int, record: int = 0) -> list[Result]:
    """Matches of two entries on maps that are new to them, each filed when it is over: a kill loses no other."""
    sides = contest.sides
    if first.id == second.id or games < 1 or games % sides:
        what = "at least one match" if sides == 1 else f"a multiple of {sides} matches, {sides} on each map"
        raise ProtegeError(f"two different players and {what} are needed; got {first.name}, {second.name} and {games}")
    players = league.opponent(first), league.opponent(second)
    maps = league.reserve_maps(first.id, second.id, games // sides)
    return contest.play(*players, maps, record, lambda result: league.file([result], ends_period=False))


@dataclass(frozen=True, kw_only=True)
class LeagueTournament(LeagueOptions):
    """Let everybody of a league meet everybody, in rounds; each round is a rating period."""

    player: UseAppendAction[tuple[str, ...]] = ()  # only these; without it, all but retired and older candidates
    rounds: int = 5  # rounds
    games: int = 2  # matches of each pair in a round
    no_record: bool = False  # record nothing; without it, a map of each pair in the last round, for the page
    threads: int = 0  # threads that play; 0 for one per core
    game: str = ""  # where a game of your own is, as package.module:GAME or a file


def run_tournament(command: LeagueTournament) -> int:
    with open_league(command.league, command.runs) as league:
        contest = _contest(league, command.game, command.threads, command.rounds * command.games)
        everybody = [league.find(name) for name in command.player] or league.pool()
        if len({entry.id for entry in everybody}) < 2:
            raise ProtegeError("a tournament needs at least two players")
        pairs = list(combinations(everybody, 2))
        played = 0
        for number in range(command.rounds):
            last = not command.no_record and number == command.rounds - 1
            for first, second in pairs:
                played += len(_meet(league, contest, first, second, command.games, int(last)))
            league.close_period()
            print(f"round {number + 1} of {command.rounds}: {played:,} matches", flush=True)
        _print_table(league, table(league))
        ratings = {f"rating.{entry.name}": league.by_id(entry.id).rating.rating for entry in everybody}
        return print_json(command, {"league": league.name, "matches": played, **ratings})


@dataclass(frozen=True, kw_only=True)
class LeaguePromote(LeagueOptions):
    """Make a candidate a member if it is good enough: 55 % against the best, 45 % against each of the top five.

    Plays the matches that are missing for that judgement first. While there is no member, the anchor is the best.
    """

    candidate: Positional[str] = ""  # who; without it, every candidate
    no_play: bool = False  # judge by the matches there are
    threads: int = 0  # threads that play; 0 for one per core
    game: str = ""  # where a game of your own is, as package.module:GAME or a file


def run_promote(command: LeaguePromote) -> int:
    with open_league(command.league, command.runs) as league:
        chosen = [league.find(command.candidate)] if command.candidate else league.entries(CANDIDATE)
        promoted = []
        opened = cache(lambda: _contest(league, command.game, command.threads))
        for entry in chosen:
            verdict = league.verdict(entry)
            while verdict.missing and not command.no_play:  # the matches may change who the best are
                contest = opened()
                for other, missing in verdict.missing:
                    _meet(league, contest, entry, league.by_id(other), missing + -missing % contest.sides, record=1)
                league.close_period()
                verdict = league.verdict(entry)
            print(f"{entry.name}: {'promoted' if verdict.passed else 'not promoted'}, {verdict.reason}")
            if verdict.passed:
                league.promote(league.by_id(entry.id), verdict.reason)
                promoted.append(entry.name)
        told = {"judged": len(chosen), "promoted": len(promoted), "names": ", ".join(promoted)}
        return print_json(command, told)


@dataclass(frozen=True, kw_only=True)
class LeagueRetire(LeagueOptions):
    """Take a player out of a league: nobody meets it any more, its history stays."""

    player: Positional[str]  # who
    reason: str = "by hand"  # why, for the record


def run_retire(command: LeagueRetire) -> int:
    with open_league(command.league, command.runs) as league:
        entry = league.find(command.player)
        league.retire(entry, command.reason)
        print(f"{entry.name} has left league {league.name}")
        return print_json(command, {"league": league.name, **_flat(league.by_id(entry.id))})


@dataclass(frozen=True, kw_only=True)
class LeaguePayoff(LeagueOptions):
    """Show who beats whom: the row's score against the column, in percent."""


def run_payoff(command: LeaguePayoff) -> int:
    with open_league(command.league, command.runs) as league:
        rows = table(league)
        cells = payoff(league, [row["id"] for row in rows])
    names = [row["name"] for row in rows]
    lines = [
        [f"{i + 1} {name}", *(f"{100 * cell['score']:.0f}" if cell else "·" for cell in line)]
        for i, (name, line) in enumerate(zip(names, cells))
    ]
    head = ("score against, %", *(str(i + 1) for i in range(len(names))))
    print_table(f"League {league.name}: row against column", head, lines, tuple(range(1, len(head))))
    met = [(a, b, cell) for a, line in zip(names, cells) for b, cell in zip(names, line) if cell]
    return print_json(command, {f"{a}.{b}.{key}": value for a, b, cell in met for key, value in cell.items()})


@dataclass(frozen=True, kw_only=True)
class LeagueShow(LeagueOptions):
    """Show one player of a league: ratings, where it comes from, how it plays, its latest matches."""

    player: Positional[str]  # who


def run_show(command: LeagueShow) -> int:
    with open_league(command.league, command.runs) as league:
        entry = league.find(command.player)
        everybody = {other.id: other for other in league.entries()}
        history, found = league.history(entry.id), styles(league, list(everybody))
        apart = sorted(distances(found).get(entry.id, {}).items(), key=lambda pair: pair[1])
        matches = recent_matches(league, entry.id, 10)
    parents: list[str] = []
    at: int | None = entry.parent
    while at is not None and at in everybody and len(parents) < 20:
        parents.append(everybody[at].name)
        at = everybody[at].parent
    about = {
        "kind": entry.kind + (f", {entry.role}" if entry.role else ""),
        "rating": f"{entry.rating.rating:.0f} ± {2 * entry.rating.deviation:.0f} after {entry.games:,} games",
        "added": date(entry.created) + (f" from run {entry.run}, step {entry.step:,}" if entry.run else ""),
        "trained on from": " < ".join(parents) or "nothing",
        "contents": entry.hash or f"scripted player {entry.player}",
        "plays most like": ", ".join(f"{everybody[other].name} ({far:.2f})" for other, far in apart[:3]) or "unknown",
    }
    print_table(f"{entry.name} in league {league.name}", (), [[key, value] for key, value in about.items()])
    lines = [[str(n), f"{r.rating:.0f}", f"± {2 * r.deviation:.0f}", str(games)] for n, _, r, games in history[-10:]]
    print_table("ratings", ("period", "rating", "95 %", "games"), lines, (0, 1, 2, 3))
    style = found.get(entry.id, {})
    print_table("how it plays", (), [[key.replace("_", " "), number(value)] for key, value in style.items()], (1,))
    won = {1: "won", 0.5: "drew", 0: "lost"}
    lines = [
        [date(m["time"]), f"{won[m['score']]} against {everybody[m['opponent']].name}", f"map {m['map']}",
         m["recording"] or ""]
        for m in matches
    ]  # fmt: skip
    print_table("latest matches", (), lines)
    return print_json(command, _flat(entry) | {f"style.{key}": value for key, value in style.items()})


LEAGUE: Final = {
    "init": Command(init_options, run_init),
    "add": Command(LeagueAdd, run_add),
    "list": Command(LeagueList, run_list),
    "match": Command(LeagueMatch, run_match),
    "tournament": Command(LeagueTournament, run_tournament),
    "promote": Command(LeaguePromote, run_promote),
    "retire": Command(LeagueRetire, run_retire),
    "payoff": Command(LeaguePayoff, run_payoff),
    "show": Command(LeagueShow, run_show),
}
