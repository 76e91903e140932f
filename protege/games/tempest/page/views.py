"""Every live view of Tempest that a page can ask for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from protege import ProtegeError
from protege.dashboard.live import Page, Tab
from protege.games.tempest.agents.contest import STYLE
from protege.games.tempest.agents.players import BUILT_IN, CHAMPIONS
from protege.games.tempest.arcade.screens import arcades
from protege.games.tempest.arcade.wire import PORT
from protege.games.tempest.page.human import HighScores, HumanGame
from protege.games.tempest.page.live import GRID, RATE, ArcadeGames, Film, LiveGames, WatchedPlayer
from protege.games.tempest.rules.levels import LAST_LEVEL, START_LEVELS
from protege.games.tempest.task.env import starts
from protege.games.tempest.task.recordings import SUFFIX, Recording, load_recording
from protege.league.league import open_league
from protege.runs.metrics import near
from protege.runs.run import Run, checked_name, list_runs, open_run, runs_folder
from protege.seeds import EVALUATION


class TempestViews:
    """Opens live views by kind and by settings as they come from a page's address, so nothing in them is trusted."""

    game = "tempest"
    style = STYLE
    page = Page(
        Path(__file__).parent / "static", (Tab("live", "Live", "live.js"), Tab("play", "Play", "play.js")),
        styles=("live.css", "play.css"), links="links.js",
    )  # fmt: skip

    def __init__(self, runs: Path | None = None, more_players: Sequence[str] = ()) -> None:
        self.runs, self.folder = runs, runs_folder(runs)
        self.more_players = tuple(more_players)  # named by whoever started the server: a page cannot import code
        self.scores = HighScores(self.folder / "tempest-highscores.json")

    def about(self) -> dict[str, Any]:
        recorded = {run.name: sorted(run.recordings.glob(f"*{SUFFIX}")) for run in self._ready()}
        return {
            "players": self.players(),
            "recordings": {name: [path.name for path in files] for name, files in recorded.items() if files},
            "start_levels": START_LEVELS.tolist(), "grid": GRID, "rate": RATE,
            "arcades": [{"server": arcade.server, "player": arcade.player} for arcade in arcades(self.folder)],
        }  # fmt: skip

    def players(self) -> list[str]:
        """Who can be watched: whoever the command line named, then those that come with Protege, then runs."""
        return list(dict.fromkeys([*self.more_players, *CHAMPIONS, *BUILT_IN, *(run.name for run in self._ready())]))

    def shared(self, kind: str) -> bool:
        return kind in ("watch", "arcade")

    def open(self, kind: str, settings: Mapping[str, str]) -> LiveGames | ArcadeGames | Film | HumanGame:
        """`watch` (player, games, level), `arcade` (server, games), `film` (player; recording or seed), `play`."""
        level = _number(settings, "level", 1, 1, LAST_LEVEL)
        match kind:
            case "watch":
                games = _number(settings, "games", 1, 1, GRID[-1])
                return LiveGames(self._player(settings), games=games, level=level)
            case "arcade":
                games = _number(settings, "games", 1, 1, GRID[-1])
                server = str(_number(settings, "server", PORT, 1, 65535))
                return ArcadeGames(self.folder, server, lambda name: self._player({"player": name}), games=games)
            case "film" if "recording" in settings:
                recording = self._recording(settings)
                return Film(self._player(settings), recording.start, recording.moves)
            case "film":
                seed, game = _number(settings, "seed", 1, 0, 2**31), _number(settings, "game", 0, 0, 2**31)
                start = starts(1, seed=seed, level=level, domain=EVALUATION, first=game)[0]
                return Film(self._player(settings), start)
            case "play":
                return HumanGame(WatchedPlayer("champion", self.runs), self.scores)
        raise ProtegeError(f"there is no live view {kind!r}: expected watch, arcade, film or play")

    def high_scores(self) -> list[dict[str, Any]]:
        return [msgspec.to_builtins(line) for line in self.scores.best()]

    def file(self, settings: Mapping[str, str]) -> bytes:
        raise ProtegeError("recordings of Tempest are watched as films: ask for the live view film")

    def _ready(self) -> list[Run]:
        """Runs that have weights to play with, the newest first."""
        trained = [Run(self.folder / run.name) for run in list_runs(self.runs) if run.game == self.game]
        return [run for run in reversed(trained) if run.all_checkpoints()]

    def _recording(self, settings: Mapping[str, str]) -> Recording:
        with open_run(settings.get("player", ""), self.runs) as run:
            path = run.recordings / Path(settings["recording"]).name  # never outside the folder
        if path.suffix != SUFFIX or not path.is_file():
            raise ProtegeError(f"run {run.name} has no recording {path.name!r}")
        return load_recording(path)

    def _player(self, settings: Mapping[str, str]) -> WatchedPlayer:
        """A player by name, one of a `league` if that is named as well."""
        name = settings.get("player", "champion")
        if "league" in settings:
            with open_league(checked_name(settings["league"]), self.runs) as league:
                return WatchedPlayer(league.opponent(league.find(name)).player, self.runs, name)
        if name not in (*self.more_players, *BUILT_IN, *CHAMPIONS):
            checked_name(name)
            if name not in [run.name for run in list_runs(self.runs)]:
                raise ProtegeError(f"there is no player {name!r} here{near(name, self.players())}")
        return WatchedPlayer(name, self.runs)


def _number(settings: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = settings.get(name, str(default))
    if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
        raise ProtegeError(f"{name} must be a whole number from {least} to {most}; got {text[:40]!r}")
    return int(text)
