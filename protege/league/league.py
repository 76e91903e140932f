"""A league: players that are rated against each other, and opponents for those that learn.

One folder: the ledger, `entries/` with a copy of every checkpoint under the hash of its contents, and `recordings/`.
A player that learns (an agent) asks for opponents and reports; what it is at some moment enters as a copy that nothing
can change. Opens no network and knows no game; nothing is unpickled.
"""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import protege
from protege.league import ledger, matchmaking
from protege.league.glicko import Rating
from protege.league.ledger import AGENT, CANDIDATE, FILE, MEMBER, RETIRED, SCRIPTED, Entry, LeagueError, Ledger
from protege.league.matchmaking import EXPLOITERS, MAIN, MAIN_EXPLOITER, Rules, Tally, Verdict
from protege.runs.files import replacing
from protege.runs.metrics import near
from protege.runs.run import Run, checked_name, runs_folder


class Opponent(NamedTuple):
    """Somebody to play against."""

    id: int
    name: str
    player: str  # for the game's `find_player`: a scripted player, or the path of a copy that was checked


def shipped_folders() -> list[Path]:
    """Where the leagues are that come with the games."""
    return sorted(Path(protege.__file__).parent.glob("games/*/leagues"))


def league_names(runs: Path | None = None) -> list[str]:
    """The leagues in the runs folder, then those that come with Protege."""
    places = (runs_folder(runs), *shipped_folders())
    return list(dict.fromkeys(file.parent.name for place in places for file in sorted(place.glob(f"*/{FILE}"))))


def find_league(name: str, runs: Path | None = None) -> Path:
    """The folder of a league: a path, a name in the runs folder, or one that comes with Protege."""
    for folder in (Path(name), runs_folder(runs) / name, *(shipped / name for shipped in shipped_folders())):
        if (folder / FILE).is_file():
            return folder
    similar = near(name, league_names(runs))
    raise LeagueError(f"there is no league {name!r}: make one with protege league init {name} --game GAME{similar}")


def find_recording(name: str, file: str, runs: Path | None = None) -> Path:
    """A recorded match of a league, both by name: a page asks for it, so neither may lead out of the folders."""
    path = find_league(checked_name(name), runs) / "recordings" / Path(file).name
    if not path.is_file() or path.name.startswith("."):
        raise LeagueError(f"league {name} has no recording {path.name!r}: only the newest of every entry are kept")
    return path


def open_league(name: str, runs: Path | None = None) -> "League":
    """A league to read and write; those that come with Protege can only be read."""
    folder = find_league(name, runs)
    return League(folder, read_only=folder.resolve().parent in [shipped.resolve() for shipped in shipped_folders()])


def create_league(
    folder: Path, signature: Mapping[str, Any], scripted: Sequence[str], anchor: str, rules: Rules = Rules()
) -> "League":
    """A new league of scripted players. `signature` names the game, its versions and the setting of every match."""
    assert anchor in scripted, f"the anchor {anchor} is not among {scripted}"
    with _making(folder, "no league can be made in"):
        ledger.create_ledger(folder, signature, scripted, anchor, rules)
    return League(folder)


def copy_league(source: "League", folder: Path) -> "League":
    """A copy to go on with, whole even while others use the source."""
    with _making(folder, "the league cannot be copied to"), replacing(folder / FILE) as draft:
        source.write_to(draft)  # first: a file is always there before the row that names it
        for file in sorted([*source.folder.glob("entries/[!.]*"), *source.folder.glob("recordings/[!.]*")]):
            (folder / file.parent.name).mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # an old recording may be dropped meanwhile
                shutil.copyfile(file, folder / file.parent.name / file.name)
    return League(folder)


@contextmanager
def _making(folder: Path, problem: str) -> Iterator[None]:
    if (folder / FILE).exists():
        raise LeagueError(f"{folder} holds a league already: choose another folder")
    if Run(folder).exists():
        raise LeagueError(f"{folder} holds a run: choose another name or folder for the league")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise LeagueError(f"{problem} {folder}: {error.strerror}") from error


class League(Ledger):
    """An open league. One thread at a time; any number of processes."""

    def require(self, signature: Mapping[str, Any]) -> None:
        """Refuse to mix: matches of another game, version or setting say nothing about each other."""
        given, own = json.loads(json.dumps(signature)), self.signature
        differing = [key for key in sorted({*given, *own}) if given.get(key) != own.get(key)]
        if differing:
            what = ", ".join(f"{key} {own.get(key)!r} here and {given.get(key)!r} there" for key in differing)
            raise LeagueError(f"league {self.name} was made for other matches ({what}): begin another league")

    def find(self, name: str) -> Entry:
        """An entry by name, or by the first letters of its hash."""
        found = self.select("name = ?", name)
        if not found and re.fullmatch("[0-9a-f]{6,64}", name):
            found = self.select("substr(hash, 1, ?) = ?", len(name), name)
        if len(found) != 1:
            similar = near(name, (entry.name for entry in self.entries()))
            raise LeagueError(f"league {self.name} has no entry {name!r}{similar or ': protege league list shows all'}")
        return found[0]

    def opponent(self, entry: Entry) -> Opponent:
        """An entry as a player of its game; a copy that is not what was added is refused."""
        if entry.hash is None:
            if not entry.player:
                raise LeagueError(f"{entry.name} is an agent and changes as it learns: name one of its copies")
            player = str(entry.player)
            if not re.fullmatch("[a-z0-9-]+", player):  # games import what looks like package.module:Class
                raise self._damaged(ValueError(f"{player!r} is no scripted player"))
            return Opponent(entry.id, entry.name, player)
        path = self._copy(entry.hash)
        try:
            if not _is_whole(path, path.stat().st_mtime_ns, entry.hash):
                raise LeagueError(f"the checkpoint of {entry.name} is damaged, {path} is not what was added: retire it")
        except OSError as error:
            raise LeagueError(f"the checkpoint of {entry.name} cannot be read, {path}: {error.strerror}") from error
        return Opponent(entry.id, entry.name, str(path))

    def add(
        self, checkpoint: Path, *, name: str = "", role: str = "", run: str = "", step: int = 0,
        parent: int | None = None, kind: str = CANDIDATE,
    ) -> Entry:  # fmt: skip
        """Take a copy of a checkpoint; one that is here already is not taken twice."""
        digest = self._take(checkpoint)
        with self.writing():
            there = self.select("hash = ?", digest)
            if there:
                return there[0]
            if name and self.select("name = ?", name):
                raise LeagueError(f"league {self.name} has an entry {name!r} already: choose another name")
            name = name or self._free_name(callsign(digest))
            id = self.execute(ledger.NEW_ENTRY, name, kind, role, "", digest, run, step, parent, time.time(), *Rating())
            self.note(id, "added", f"as {kind}" + (f", from {run} at step {step:,}" if run else ""))
            self.retire_surplus()
            return self.by_id(id)

    def promote(self, entry: Entry, reason: str) -> None:
        """A candidate becomes a member, and whoever is too many then retires."""
        self._require_candidate(entry)
        self.set_kind(entry.id, MEMBER, "promoted", reason)

    def retire(self, entry: Entry, reason: str) -> None:
        """Nobody meets it any more; its history stays."""
        if entry.kind == SCRIPTED:
            raise LeagueError(f"{entry.name} is scripted and stays: the ratings hang on it")
        self.set_kind(entry.id, RETIRED, "retired", reason)

    def verdict(self, candidate: Entry) -> Verdict:
        """Whether a candidate may become a member, by its rated matches; the first one has to beat the anchor."""
        self._require_candidate(candidate)
        found = {other: Tally(payoff.score, payoff.games) for other, payoff in self.payoffs(candidate.id).items()}
        return matchmaking.gate(self.entries(MEMBER) or [self.anchor], found, self.rules)

    def _require_candidate(self, entry: Entry) -> None:
        if entry.kind not in (CANDIDATE, RETIRED) or entry.hash is None:
            raise LeagueError(f"{entry.name} is {entry.kind}: only a candidate can be promoted")

    def pool(self) -> list[Entry]:
        """Whoever is played against: scripted players, members and the newest candidates."""
        candidates = self.entries(CANDIDATE)
        return [*self.entries(SCRIPTED, MEMBER), *candidates[max(0, len(candidates) - self.rules.newest) :]]

    def agent(self, run: str, role: str = MAIN) -> Entry:
        """The agent that a training is in this league, made on the first call."""
        found = self.select("kind = ? AND run = ?", AGENT, run)
        if not found:
            return self._new_agent(run, role)
        if found[-1].role != role:
            raise LeagueError(f"{run} is in league {self.name} as {found[-1].role}, not as {role}")
        return found[-1]

    def note_origin(self, agent: int, checkpoint: Path) -> None:
        """An agent begins with these weights: if they are an entry's, that is its parent."""
        for entry in self.select("hash = ?", _hash(checkpoint)):
            self.execute("UPDATE entries SET parent = ? WHERE id = ?", entry.id, agent)

    def opponents(self, agent: int) -> tuple[list[Entry], list[float]]:
        """Everybody an agent may meet, and the probability of each."""
        me = self.by_id(agent)
        if me.role == MAIN_EXPLOITER:
            return [self.newest_main() or self.anchor], [1.0]
        pool = self.pool()
        recent = {other: payoff.recent for other, payoff in self.payoffs(agent, rated=False).items()}
        return pool, matchmaking.draw_probabilities(me, pool, recent, self.rules).tolist()

    def current_main(self) -> Opponent | None:
        """The newest copy of the main agent, which a main exploiter plays against."""
        main = self.newest_main()
        return self.opponent(main) if main else None

    def submit(self, agent: int, checkpoint: Path, step: int) -> Entry:
        """What an agent is now, as a candidate."""
        me = self.by_id(agent)
        before = self.select("run = ? AND hash IS NOT NULL", me.name)
        parent = before[-1].id if before else me.parent
        name = self._free_name(f"{me.name}@{step}")
        return self.add(checkpoint, name=name, role=me.role, run=me.name, step=step, parent=parent)

    def copies(self, run: str) -> list[Entry]:
        """What a training has left here so far, in all its lives."""
        return self.select("hash IS NOT NULL AND run IN (SELECT name FROM entries WHERE hash IS NULL AND run = ?)", run)

    def reset_due(self, agent: int) -> str:
        """Why an exploiter must begin again, or nothing."""
        me = self.by_id(agent)
        return matchmaking.reset_reason(me.role, me.games, self._exploited(me), self.rules)

    def reset(self, agent: int, reason: str) -> Entry:
        """The exploiter's next life, with nothing learned or rated yet; it begins with the main agent's weights."""
        me = self.by_id(agent)
        assert me.role in EXPLOITERS, f"{me.name} is {me.role}: only exploiters begin again"
        with self.writing():
            recent, copies = self._exploited(me), self.select("run = ? AND kind = ?", me.name, CANDIDATE)
            if copies and recent.score >= self.rules.exploiter_score * max(recent.games, 1):
                # It did its work: the main agent is to learn to beat it.
                self.set_kind(copies[-1].id, MEMBER, "promoted", reason)
            self.set_kind(me.id, RETIRED, "retired", f"begins again: {reason}")
            return self._new_agent(me.run, me.role)

    def _exploited(self, me: Entry) -> Tally:
        """An exploiter's recent games against whomever of its targets it scores least; none until it knows them all."""
        met = self.payoffs(me.id, rated=False)
        targets = self._targets(me)
        if any(target not in met or met[target].games < self.rules.exploiter_met for target in targets):
            return Tally()
        recent = (met[target].recent for target in targets)
        return min(recent, key=lambda tally: tally.score / tally.games, default=Tally())

    def _targets(self, me: Entry) -> list[int]:
        """Whom an exploiter has to beat: the main agent, or all members; while nobody has learned, the anchor."""
        if me.role == MAIN_EXPLOITER:
            main = self.newest_main()
            return [main.id] if main else []
        learned = [entry for entry in self.pool() if entry.hash is not None and entry.run != me.name]
        members = [entry.id for entry in learned if entry.kind == MEMBER]
        return members or [entry.id for entry in learned] or [self.anchor.id]

    def _new_agent(self, run: str, role: str) -> Entry:
        with self.writing():
            name = self._free_name(run)
            id = self.execute(ledger.NEW_ENTRY, name, AGENT, role, "", None, run, 0, None, time.time(), *Rating())
            self.note(id, "joined", f"as {role}")
            return self.by_id(id)

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while self.select("name = ?", name):
            number += 1
            name = f"{wanted}-{number}"
        return name

    def _take(self, checkpoint: Path) -> str:
        """Copy a checkpoint under the hash of its contents, if it is a whole one of this game; returns the hash."""
        from protege.runs.checkpoints import CheckpointError, CheckpointMismatch, load  # torch takes a second to import

        self.require_writable()
        if not checkpoint.is_file():
            raise CheckpointError(f"there is no checkpoint {checkpoint}")
        folder = self.folder / "entries"
        draft = folder / f".{os.getpid()}-{time.monotonic_ns()}.tmp"
        try:
            folder.mkdir(exist_ok=True)
            shutil.copyfile(checkpoint, draft)  # first, so that what is looked at is what is kept
            try:
                saved = load(draft, task_version=self.task_version)
            except CheckpointError as error:
                raise type(error)(str(error).replace(str(draft), str(checkpoint))) from error
            if not saved.kind.startswith(f"{self.game}-") or saved.kind.endswith("-recording"):
                raise CheckpointMismatch(f"{checkpoint} is a {saved.kind}, expected a checkpoint of {self.game}")
            digest = _hash(draft)
            with replacing(self._copy(digest)) as final:
                draft.rename(final)
            self._copy(digest).chmod(0o444)
        except OSError as error:
            raise LeagueError(f"{checkpoint} cannot be copied to {folder}: {error.strerror}") from error
        finally:
            draft.unlink(missing_ok=True)
        return digest

    def _copy(self, digest: str) -> Path:
        return self.folder / "entries" / f"{digest}.safetensors"


@lru_cache(maxsize=256)  # agents meet the same opponents again and again; a file that was touched is read anew
def _is_whole(path: Path, modified: int, digest: str) -> bool:
    return _hash(path) == digest


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


MANNERS = "amber brisk calm dusty early fierce grave hidden iron jolly keen lone misty north outer pale".split()
ANIMALS = "adder badger crane dingo eland falcon gecko heron ibis jackal kestrel lynx marten newt otter puma".split()


def callsign(digest: str) -> str:
    """A name that follows from a hash and is easier to say."""
    return f"{MANNERS[int(digest[0], 16)]}-{ANIMALS[int(digest[1], 16)]}-{digest[2:6]}"
