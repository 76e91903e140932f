"""What happened in a league, in one SQLite file: entries, every match, payoffs, ratings period by period, events.

Everything is written in whole transactions, so a kill at any moment loses at most what was just being filed, and
several processes can use a league at once. Matches, ratings and events are only ever added. Knows no game.
"""

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from protege import ProtegeError, __version__
from protege.league.glicko import Played, Rating, period
from protege.league.matchmaking import MAIN, Rules, Standing, Tally, to_retire
from protege.runs.files import replacing
from protege.runs.run import LEAGUE_FILE

FORMAT: Final = 1
MARK: Final = 0x50724C67  # tells a league from any other SQLite file
FILE: Final = LEAGUE_FILE
PATIENCE_S: Final = 20.0  # how long to wait for another process's transaction
FORGETTING: Final = 0.98  # an agent's result counts so much less with every later one against the same opponent

SCRIPTED, CANDIDATE, MEMBER, RETIRED, AGENT = "scripted", "candidate", "member", "retired", "agent"

ENTRY: Final = "name, kind, role, player, hash, run, step, parent, created, rating, deviation, volatility, games"
NEW_ENTRY: Final = f"INSERT INTO entries ({ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
TABLES: Final = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
    player TEXT NOT NULL, hash TEXT UNIQUE, run TEXT NOT NULL, step INTEGER NOT NULL, parent INTEGER,
    created REAL NOT NULL, rating REAL NOT NULL, deviation REAL NOT NULL, volatility REAL NOT NULL,
    games INTEGER NOT NULL);
CREATE TABLE matches (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, first INTEGER NOT NULL,
    second INTEGER NOT NULL, score REAL NOT NULL, rated INTEGER NOT NULL, map INTEGER, swapped INTEGER NOT NULL,
    detail TEXT NOT NULL, recording TEXT, period INTEGER);
CREATE UNIQUE INDEX once ON matches (min(first, second), max(first, second), map, swapped) WHERE rated;
CREATE INDEX rated ON matches (id) WHERE rated;
CREATE INDEX open ON matches (id) WHERE period IS NULL;
CREATE INDEX recorded ON matches (id) WHERE recording IS NOT NULL;
CREATE TABLE payoffs (first INTEGER, second INTEGER, rated INTEGER, wins INTEGER NOT NULL, draws INTEGER NOT NULL,
    losses INTEGER NOT NULL, recent_score REAL NOT NULL, recent_games REAL NOT NULL,
    PRIMARY KEY (first, second, rated)) WITHOUT ROWID;
CREATE TABLE maps (first INTEGER, second INTEGER, next INTEGER NOT NULL, PRIMARY KEY (first, second)) WITHOUT ROWID;
CREATE TABLE periods (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, games INTEGER NOT NULL);
CREATE TABLE history (entry INTEGER, period INTEGER, rating REAL NOT NULL, deviation REAL NOT NULL,
    volatility REAL NOT NULL, games INTEGER NOT NULL, PRIMARY KEY (entry, period)) WITHOUT ROWID;
CREATE TABLE styles (entry INTEGER, match INTEGER, style TEXT NOT NULL, PRIMARY KEY (entry, match)) WITHOUT ROWID;
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, entry INTEGER, kind TEXT NOT NULL,
    text TEXT NOT NULL);
"""


class LeagueError(ProtegeError):
    """A league that cannot be used, or used so."""


@dataclass(frozen=True)
class Entry(Standing):
    """Somebody in the league. Scripted players and copies never change; agents do."""

    name: str
    kind: str  # scripted, candidate, member, retired or agent
    role: str  # of the agent it is, or was taken from
    player: str  # what the game calls a scripted player
    hash: str | None  # of the copy's contents, SHA-256
    run: str  # the training it comes from
    step: int
    parent: int | None  # the entry whose training it continues
    created: float  # seconds since 1970


class Game(NamedTuple):
    """One finished game of an agent in training."""

    opponent: int
    score: float  # of the agent: 1, 0.5 or 0
    seed: int = 0
    swapped: bool = False  # the agent had the other side


class Result(NamedTuple):
    """One finished match between two entries that do not change."""

    first: int
    second: int
    score: float  # of the first: 1, 0.5 or 0
    map: int  # its number among the league's evaluation maps, as reserved
    swapped: bool = False
    detail: Mapping[str, Any] = {}
    recording: bytes | None = None
    styles: tuple[Mapping[str, float], Mapping[str, float]] | None = None


Filing = Callable[[Result], object]  # what is done with a match as soon as it is over


class Payoff(NamedTuple):
    """What one entry scored against another."""

    wins: int
    draws: int
    losses: int
    recent: Tally

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        return self.wins + self.draws / 2


def create_ledger(
    folder: Path, signature: Mapping[str, Any], scripted: Sequence[str], anchor: str, rules: Rules
) -> None:
    """A new file that holds scripted players alone; the anchor is what a rating of 1500 means."""
    about = {"signature": dict(signature), "rules": asdict(rules), "anchor": anchor, "protege": __version__}
    with replacing(folder / FILE) as draft, closing(sqlite3.connect(draft, isolation_level=None)) as database:
        database.executescript(f"BEGIN; {TABLES} PRAGMA application_id = {MARK}; PRAGMA user_version = {FORMAT};")
        database.executemany("INSERT INTO about VALUES (?, ?)", [(k, json.dumps(v)) for k, v in about.items()])
        for name in scripted:
            rating = Rating(deviation=0.0) if name == anchor else Rating()
            database.execute(NEW_ENTRY, (name, SCRIPTED, "", name, None, "", 0, None, time.time(), *rating))
        database.execute("COMMIT")


class Ledger:
    """An open file. One thread at a time."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.folder, self.name = folder, folder.name
        self.path, self.recordings = folder / FILE, folder / "recordings"
        self.read_only = read_only or not os.access(folder, os.W_OK)
        with self._explained():
            self._database = self._open()
        try:
            about = {key: self._parsed(value) for key, value in self._rows("SELECT key, value FROM about")}
            self.signature: dict[str, Any] = dict(about["signature"])
            self.game, self.task_version = str(self.signature["game"]), int(self.signature["task_version"])
            given, usual = about["rules"], asdict(Rules())
            self.rules = Rules(**{name: type(value)(given[name]) for name, value in usual.items() if name in given})
            self.anchor = self.by_name(about["anchor"])
        except (LeagueError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._database.close()
            raise LeagueError(f"the league file {self.path} is damaged, it does not say what it is: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def entries(self, *kinds: str) -> list[Entry]:
        """Everybody, or those of some kinds, in the order they came."""
        return self.select(f"kind IN ({', '.join('?' * len(kinds))})" if kinds else "1", *kinds)

    def select(self, where: str, *values: Any) -> list[Entry]:
        """Entries by a condition of SQL, in the order they came."""
        rows = self._rows(f"SELECT id, {ENTRY} FROM entries WHERE {where} ORDER BY id", *values)
        try:
            return [Entry(row[0], Rating(*map(float, row[10:13])), int(row[13]), *row[1:10]) for row in rows]
        except (TypeError, ValueError) as error:
            raise self._damaged(error) from error

    def by_name(self, name: str) -> Entry:
        return self._only("name", name)

    def by_id(self, id: int) -> Entry:
        return self._only("id", id)

    def newest_main(self) -> Entry | None:
        """The newest copy of the main agent that has not retired."""
        found = self.select("role = ? AND kind IN (?, ?)", MAIN, CANDIDATE, MEMBER)
        return found[-1] if found else None

    def reserve_maps(self, first: int, second: int, count: int) -> range:
        """Numbers of evaluation maps that these two have not played, and that nobody else lets them play: the same
        match twice would count as two pieces of evidence."""
        low, high = sorted((first, second))
        with self.writing() as database:
            add = "INSERT INTO maps VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET next = next + excluded.next"
            ((end,),) = database.execute(f"{add} RETURNING next", (low, high, count)).fetchall()
        return range(end - count, end)

    def file(self, results: Sequence[Result], *, ends_period: bool | None = None) -> None:
        """File matches, all or none. They rate both sides, when the period ends: with them or later, as `ends_period`
        says, else once enough games are filed.
        """
        try:
            with self.writing():
                for result in results:
                    self._file(result)
                self._close_period(due=ends_period)
            if any(result.recording is not None for result in results):
                self._drop_old_recordings()
        except OSError as error:
            raise LeagueError(f"no recording can be kept in {self.recordings}: {error.strerror}") from error

    def report(self, agent: int, games: Sequence[Game]) -> None:
        """File an agent's games. They rate the agent alone: it tries things out, and the others lent themselves."""
        with self.writing():
            for opponent, score, seed, swapped in games:
                self._add_match(agent, opponent, score, False, None, swapped, {"seed": seed})
            self._close_period()

    def close_period(self) -> None:
        """End the rating period now, if anything was played in it."""
        with self.writing():
            self._close_period(due=True)

    def note(self, entry: int, kind: str, text: str) -> None:
        new = "INSERT INTO events (time, entry, kind, text) VALUES (?, ?, ?, ?)"
        self.execute(new, time.time(), entry, kind, text)

    def set_kind(self, entry: int, kind: str, event: str, reason: str) -> None:
        """An entry becomes a member, and whoever is too many then retires; or it retires itself."""
        with self.writing():
            self.execute("UPDATE entries SET kind = ? WHERE id = ?", kind, entry)
            self.note(entry, event, reason)
            if kind == MEMBER:
                self.retire_surplus()

    def retire_surplus(self) -> None:
        """Members leave until no more are left than the limit."""
        with self.writing():
            main = self.newest_main()
            for id in to_retire(self.entries(MEMBER), self.rules, frozenset({main.id} if main else ())):
                self.set_kind(id, RETIRED, "retired", f"more than {self.rules.limit} members")

    def require_writable(self) -> None:
        """Raise if the league can only be read."""
        if self.read_only:
            how = f"go on with a copy, protege league init mine --copy {self.name}"
            raise LeagueError(f"league {self.name} can only be read: {how}")

    def execute(self, query: str, *values: Any) -> int:
        """Change something, in a transaction of its own unless inside another; returns the number of a new row."""
        with self.writing() as database:
            return database.execute(query, values).lastrowid or 0

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of what follows, or none of it. Inside another one, a part of that."""
        self.require_writable()
        if self._database.in_transaction:
            yield self._database
            return
        with self._explained(), self._database as database:  # commits, or rolls back
            database.execute("BEGIN IMMEDIATE")
            yield database

    def payoffs(self, entry: int, *, rated: bool = True) -> dict[int, Payoff]:
        """What an entry scored against each of the others, in rated matches or in training."""
        kept = "second, wins, draws, losses, recent_score, recent_games"
        rows = self._rows(f"SELECT {kept} FROM payoffs WHERE first = ? AND rated = ?", entry, rated)
        return {other: Payoff(won, drawn, lost, Tally(*recent)) for other, won, drawn, lost, *recent in rows}

    def history(self, entry: int) -> list[tuple[int, float, Rating, int]]:
        """An entry's ratings: period, time, rating, games in all."""
        rows = self._rows(
            "SELECT period, time, rating, deviation, volatility, history.games FROM history"
            " JOIN periods ON id = period WHERE entry = ? ORDER BY period", entry,
        )  # fmt: skip
        return [(number, when, Rating(*rating), games) for number, when, *rating, games in rows]

    def styles(self, entry: int, most: int = 100) -> list[dict[str, float]]:
        """How an entry played in its newest matches that were looked at."""
        rows = self._rows("SELECT style FROM styles WHERE entry = ? ORDER BY match DESC LIMIT ?", entry, most)
        return [self._parsed(style) for (style,) in rows]

    def matches(self, entry: int, most: int = 20, *, recorded: bool = False) -> list[dict[str, Any]]:
        """An entry's newest matches that were rated; there may be a hundred times as many in training."""
        keys = "id time first second score map swapped recording period detail".split()
        where = "rated AND ? IN (first, second)" + (" AND recording IS NOT NULL" if recorded else "")
        query = f"SELECT {', '.join(keys)} FROM matches WHERE {where} ORDER BY id DESC LIMIT ?"
        return [dict(zip(keys, row)) | {"detail": self._parsed(row[-1])} for row in self._rows(query, entry, most)]

    def counts(self) -> dict[str, int]:
        ((matches, rated, pending),) = self._rows("SELECT count(*), total(rated), total(period IS NULL) FROM matches")
        ((periods,),) = self._rows("SELECT count(*) FROM periods")
        return {"matches": matches, "rated": int(rated), "pending": int(pending), "periods": periods}

    def events(self, most: int = 30) -> list[dict[str, Any]]:
        """What happened to entries, the newest first."""
        rows = self._rows("SELECT time, entry, kind, text FROM events ORDER BY id DESC LIMIT ?", most)
        return [dict(zip(("time", "entry", "kind", "text"), row)) for row in rows]

    def write_to(self, path: Path) -> None:
        """The whole ledger as one compact file."""
        self._rows("VACUUM INTO ?", str(path))

    def _open(self) -> sqlite3.Connection:
        # A file nobody writes is read as it is, as SQLite would want to keep files of its own beside it. Where somebody
        # else writes these are there, and hold what the file itself does not hold yet.
        is_written = self.path.with_name(f"{FILE}-wal").exists()
        mode = "mode=rw" if not self.read_only else "mode=ro" if is_written else "immutable=1"
        uri = f"{self.path.absolute().as_uri()}?{mode}"
        database = sqlite3.connect(uri, PATIENCE_S, uri=True, isolation_level=None, check_same_thread=False)
        try:
            ((mark,),) = database.execute("PRAGMA application_id").fetchall()
            ((version,),) = database.execute("PRAGMA user_version").fetchall()
            if mark != MARK:
                raise LeagueError(f"{self.path} is an SQLite file but no league")
            if version != FORMAT:
                raise LeagueError(f"{self.path} has format {version}, expected {FORMAT}: use the Protege that made it")
            if not self.read_only:
                database.execute("PRAGMA journal_mode = WAL")
            problems = [row[0] for row in database.execute("PRAGMA quick_check(1)")]
            if problems != ["ok"]:
                raise sqlite3.DatabaseError(problems[0])
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            busy = isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error)
            if busy or isinstance(error, sqlite3.IntegrityError):
                raise LeagueError(f"the league file {self.path} cannot be used now: {error}") from error
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> LeagueError:
        why = " ".join(str(error).split())
        return LeagueError(f"the league file {self.path} is damaged ({why}): take a copy of it from before")

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._damaged(error) from error

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._explained():
            return self._database.execute(query, values).fetchall()

    def _only(self, column: str, value: object) -> Entry:
        found = self.select(f"{column} = ?", value)
        if not found:
            raise LeagueError(f"league {self.name} has no entry {value!r}")
        return found[0]

    def _file(self, result: Result) -> None:
        """One match into the tables; its recording is in its place before the row that names it."""
        first, second, score = result[:3]
        id = self._add_match(first, second, score, True, result.map, result.swapped, result.detail)
        self._count(second, first, 1 - score, rated=True)
        for entry, style in zip((first, second), result.styles or ()):
            self.execute("INSERT INTO styles VALUES (?, ?, ?)", entry, id, json.dumps(style))
        if result.recording is not None:
            self.recordings.mkdir(exist_ok=True)
            path = self._recording(id)
            with replacing(path) as draft:
                draft.write_bytes(result.recording)
            self.execute("UPDATE matches SET recording = ? WHERE id = ?", path.name, id)

    def _add_match(
        self, first: int, second: int, score: float, rated: bool, map: int | None, swapped: bool, detail: object
    ) -> int:
        """Its row, counted for the first of the two; returns its number."""
        self._count(first, second, score, rated=rated)
        row = time.time(), first, second, score, rated, map, swapped, json.dumps(detail)
        columns = "time, first, second, score, rated, map, swapped, detail"
        return self.execute(f"INSERT INTO matches ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def _count(self, first: int, second: int, score: float, *, rated: bool) -> None:
        assert score in (0, 0.5, 1), f"a game scores 0, 0.5 or 1, not {score}"
        self.execute(
            "INSERT INTO payoffs VALUES (?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET wins = wins + excluded.wins,"
            " draws = draws + excluded.draws, losses = losses + excluded.losses,"
            f" recent_score = {FORGETTING} * recent_score + excluded.recent_score,"
            f" recent_games = {FORGETTING} * recent_games + 1",
            first, second, rated, score == 1, score == 0.5, score == 0, score,
        )  # fmt: skip
        self.execute("UPDATE entries SET games = games + 1 WHERE id = ?", first)

    def _close_period(self, *, due: bool | None = None) -> None:
        """Everybody's rating from those before the period, written together; then whoever is too many retires."""
        if due is False:
            return
        rows = self._rows("SELECT first, second, score, rated FROM matches WHERE period IS NULL")
        if not rows or not (due or len(rows) >= self.rules.period_games):
            return
        games = [Played(first, second, score, bool(rated)) for first, second, score, rated in rows]
        playing = {player for game in games for player in game[:2]}
        entries = {entry.id: entry for entry in self.entries() if entry.kind != RETIRED or entry.id in playing}
        after = period({id: entry.rating for id, entry in entries.items()}, games, self.anchor.id)
        number = self.execute("INSERT INTO periods (time, games) VALUES (?, ?)", time.time(), len(rows))
        self.execute("UPDATE matches SET period = ? WHERE period IS NULL", number)
        for id, rating in after.items():
            if rating != entries[id].rating or id == self.anchor.id:
                self.execute("UPDATE entries SET rating = ?, deviation = ?, volatility = ? WHERE id = ?", *rating, id)
                self.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)", id, number, *rating, entries[id].games)
        self.retire_surplus()

    def _drop_old_recordings(self) -> None:
        """Keep the newest of every entry: a recording goes when neither side needs it any more."""
        kept: Counter[int] = Counter()
        rows = self._rows("SELECT id, first, second FROM matches WHERE recording IS NOT NULL ORDER BY id DESC")
        for id, first, second in rows:
            is_needed = min(kept[first], kept[second]) < self.rules.recordings
            kept.update((first, second))
            if not is_needed:
                self.execute("UPDATE matches SET recording = NULL WHERE id = ?", id)
                # Never by the name in the row, which in a league from elsewhere could be that of any file.
                self._recording(id).unlink(missing_ok=True)

    def _recording(self, match: int) -> Path:
        return self.recordings / f"{match}.rec"
