"""A training's place in a league: whom it meets, what it reports, and the copies of itself that it leaves there.

Without a league, or in a stage that the league does not play, it is inactive: nobody is met, nothing is reported. A
training asks between rollouts for everybody's probabilities and draws by itself, so no battle waits for the league's
file. Of the learned players a line-up of a few takes part at a time, because each one that is in play is a network to
run; over time everybody has the probability that the league gives. Opponents are known by their names, which never
change.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from protege.games.echelon.agents.contest import signature
from protege.games.echelon.agents.match import Player, Setting, find_player
from protege.games.echelon.training.collect import Episode
from protege.games.echelon.training.config import EchelonConfig, Stage, stages_of
from protege.games.echelon.world.mechs import RED
from protege.league.league import League, Opponent, open_league
from protege.league.ledger import AGENT, Entry, Game, LeagueError
from protege.league.matchmaking import EXPLOITERS, LEAGUE_EXPLOITER, MAIN, MAIN_EXPLOITER
from protege.learn.state import restore_generator

LINE_UP: Final = 4  # learned opponents at a time, drawn by their probabilities
LINE_UP_ROLLOUTS: Final = 16  # until others are drawn
ROLES: Final = {"main": MAIN, "main-exploiter": MAIN_EXPLOITER, "league-exploiter": LEAGUE_EXPLOITER}


class LeagueAgent:
    """The opponents that a league has for one training. One thread at a time; other trainings may use the league."""

    league: League  # if the settings name one
    agent: Entry  # what the training is in the league, once it has joined

    def __init__(self, league: str, role: str, stages: Iterable[Stage], runs: Path | None = None, seed: int = 0):
        """Raises unless the league can be written to and one of the stages is what it plays; "" is none."""
        self.name, self.role = "", ROLES[role]
        self.active = False  # whether the league gives the opponents of this stage
        self._players: dict[str, Player] = {}  # with networks, by name
        self._random = np.random.default_rng(seed)
        self._line_up: list[str] = []
        self._pool_size = self._rollouts = 0
        self._saved_life = ""  # what it was called when the checkpoint that it goes on from was written
        if not league:
            return
        self.league = open_league(league, runs)
        self.name = self.league.name
        try:
            with self.league.writing():
                pass
            misfits = [self._misfit(stage) for stage in stages]
            if all(misfits):
                raise LeagueError(misfits[-1])
        except LeagueError:
            self.close()
            raise

    def close(self) -> None:
        if self.name:
            self.league.close()

    def enter(self, stage: Stage) -> None:
        """A stage begins."""
        self.active = bool(self.name) and not self._misfit(stage)

    def _misfit(self, stage: Stage) -> str:
        if stage.ground != "generated":
            return f"league {self.name} plays on generated maps, the stage on ground {stage.ground!r}"
        if stage.maps:
            return f"league {self.name} plays every battle on a new map, the stage on the same {stage.maps}"
        try:
            self.league.require(signature(Setting(stage.roster, (stage.size, stage.size), stage.length)))
        except LeagueError as error:
            matches = f"--roster {stage.roster} --size {stage.size} --length {stage.length}"
            return f"{error}: protege league init NAME --game echelon {matches}"
        return ""

    # Who the training is.

    def join(self, run: str) -> None:
        """Become an agent of the league, or the one it was before."""
        if self.name:
            self.agent = self.league.agent(run, self.role)

    def note_origin(self, checkpoint: Path) -> None:
        """It begins with these weights; if they are an entry's, the league remembers whose."""
        if self.name:
            self.league.note_origin(self.agent.id, checkpoint)

    @property
    def exploits(self) -> bool:
        """Whether it begins with the main agent's weights, and again when it has done its work."""
        return self.role in EXPLOITERS

    def main(self) -> Opponent | None:
        """The newest copy of a main agent."""
        return self.league.current_main()

    def target(self) -> Opponent | None:
        """The frozen main agent, if all that counts is to beat it."""
        return self.main() if self.active and self.role == MAIN_EXPLOITER else None

    # Battles.

    def probabilities(self) -> dict[str, float]:
        """Whom it may meet in the next rollout, and how likely each is."""
        if not self.active:
            return {}
        pool, probabilities = self.league.opponents(self.agent.id)
        met = list(zip(pool, probabilities))
        found = {entry.name: probability for entry, probability in met if entry.hash is None}
        learned = {entry.name: probability for entry, probability in met if entry.hash is not None and probability > 0}
        total = sum(learned.values())
        if self._rollouts % LINE_UP_ROLLOUTS == 0 or not self._line_up or not learned.keys() >= set(self._line_up):
            weights = [probability / total for probability in learned.values()]
            self._line_up = self._random.choice(list(learned), LINE_UP, p=weights).tolist() if learned else []
        for name in self._line_up:
            found[name] = found.get(name, 0.0) + total / LINE_UP
        self._players = {name: player for name, player in self._players.items() if name in found}
        self._pool_size, self._rollouts = len(pool), self._rollouts + 1
        return found

    def find(self, name: str) -> Player:
        """The player of an entry; networks are loaded once, what scripted players keep in mind is each one's own."""
        if not self.active:
            return find_player(name)
        if name in self._players:
            return self._players[name]
        entry = self.league.by_name(name)
        player = find_player(self.league.opponent(entry).player)
        if entry.hash is not None:
            self._players[name] = player
        return player

    def report(self, episodes: Iterable[Episode]) -> None:
        """File finished battles, all or none. They rate this training alone."""
        if not self.active:
            return
        ids = {entry.name: entry.id for entry in self.league.entries()}
        games = [Game(ids[one.opponent], one.result, one.seed, one.team == RED) for one in episodes]
        if games:
            self.league.report(self.agent.id, games)
            self.agent = self.league.by_id(self.agent.id)

    def state(self) -> dict[str, Any]:
        """For a checkpoint; all else is in the league."""
        if not self.name:
            return {}
        draws = {"random": self._random.bit_generator.state, "line_up": self._line_up, "rollouts": self._rollouts}
        return {"life": self.agent.name, "draws": draws}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._saved_life = state.get("life", "")
        if draws := state.get("draws"):
            restore_generator(self._random, draws["random"])
            self._line_up, self._rollouts = list(draws["line_up"]), draws["rollouts"]

    def began_another_life(self) -> bool:
        """Whether the league knows of a life that began after the checkpoint that was restored."""
        return self.exploits and self._saved_life not in ("", self.agent.name)

    # What it leaves there.

    def submit(self, checkpoint: Path, step: int) -> str:
        """Leave a copy of what it is now, as a candidate; in words."""
        copied = self.league.submit(self.agent.id, checkpoint, step)
        return f"{copied.name} is a {copied.kind} of league {self.name}"

    def reset_due(self) -> str:
        """Why an exploiter must begin again, or nothing."""
        return self.league.reset_due(self.agent.id) if self.active else ""

    def reset(self, reason: str) -> str:
        """The next life of an exploiter; what it is called."""
        self.agent = self.league.reset(self.agent.id, reason)
        return self.agent.name

    def figures(self) -> dict[str, float]:
        """Where it stands."""
        if not self.active:
            return {}
        rating = self.agent.rating
        return {
            "league_rating": rating.rating, "league_deviation": rating.deviation,
            "league_games": self.agent.games, "league_opponents": self._pool_size,
        }  # fmt: skip

    def summary(self) -> str:
        """The same in words, and whom it meets."""
        if not self.active:
            return ""
        me, rating = self.agent, self.agent.rating
        likeliest = sorted(zip(*self.league.opponents(me.id)), key=lambda pair: -pair[1])
        told = ", ".join(f"{entry.name} {probability:.0%}" for entry, probability in likeliest[:6])
        more = f" and {len(likeliest) - 6} more" if len(likeliest) > 6 else ""
        return (
            f"{self.league.folder}, as {me.role} {me.name}, rated {rating.rating:.0f} ± {2 * rating.deviation:.0f} "
            f"after {me.games:,} games; meets {told}{more}"
        )


def admit(config: EchelonConfig, run: str | None, resume: bool, folder: Path | None) -> None:
    """Raise unless a training may have its place in the league.

    A new one must not inherit what another one has earned, nor an old one change its role.
    """
    with closing(LeagueAgent(config.league, config.role, stages_of(config), folder)) as agent:
        if run is not None and agent.name and agent.league.select("kind = ? AND run = ?", AGENT, run):
            if not resume:
                raise LeagueError(
                    f"a training {run} is in league {agent.name} already: go on with it by --resume, "
                    "or choose another name with --run"
                )
            agent.join(run)
