"""How fast the Tempest simulator is, beside the Arcade Learning Environment, and where its time goes."""

import time
from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np
import numpy.typing as npt

from protege.games.tempest.agents.players import words
from protege.games.tempest.rules import enemies, nymphs, player, ram, sim
from protege.games.tempest.rules.ram import Row, Rows
from protege.games.tempest.task import observation, rewards, teacher
from protege.games.tempest.task.env import Games, starts
from protege.kernels import kernel
from protege.slices import Figures, Side, alternate, medians, timed

GAMES = 1024


def taught_games(games: int, *, levels: int = 40, frames: int = 200, threads: int = 1) -> Games:
    """Games from the first levels that the teacher has played past the quiet beginning."""
    found = Games(starts(games, level=[1 + i % levels for i in range(games)]), threads=threads)
    teach(found, frames)
    return found


def teach(games: Games, frames: int) -> None:
    for _ in range(frames):
        games.step(games.frames.advice)


def tempest_sim(seconds: float) -> Figures:
    """Frames per second of the simulator: rules alone, and with observation, teacher and rewards.

    The teacher plays, from levels 1 to 40. The rules alone replay its moves game by game, and again all games in step,
    as a learner needs them.
    """
    turns = count(1)

    def counted(rows: Rows, prepare: Callable[[], None], work: Callable[[], object]) -> Side:
        """Work that plays frames of these games; what prepares it is not timed."""

        def side() -> tuple[int, float]:
            prepare()
            before = words(rows, ram.FRAMES)
            _, took = timed(work)()
            return int((words(rows, ram.FRAMES) - before).sum()), took

        return side

    def everything(games: Games) -> Side:
        def renew() -> None:
            over = np.flatnonzero(games.frames.over)
            if len(over):
                games.put(over, starts(len(over), level=[1 + i % 40 for i in over.tolist()], seed=next(turns)))

        return counted(games.rows, renew, lambda: teach(games, 32))

    one = taught_games(GAMES)
    start, rows = one.rows.copy(), one.rows.copy()
    commands = []
    for _ in range(96):  # the teacher's moves from here, so that the rules can be timed alone
        commands.append(one.frames.advice.copy())
        one.step(commands[-1])
    moves = np.array(commands)

    restore = partial(np.copyto, rows, start)

    def in_step() -> None:
        for command in commands:
            sim.play_games(rows, command[None], True)

    sides = {
        "sim_frames_per_s": counted(rows, restore, lambda: sim.play_games(rows, moves, True)),
        "sim_frames_per_s_in_step": counted(rows, restore, in_step),
        "all_frames_per_s": everything(one),
        "all_frames_per_s_2_threads": everything(taught_games(GAMES, threads=2)),
    }
    for side in sides.values():
        side()  # compile
    pong = _ale_pong()
    figures = alternate(sides | ({"ale_frames_per_s": pong} if pong else {}), seconds)
    for kind in ("", "_quiet"):
        two_threads, one_thread = figures[f"all_frames_per_s_2_threads{kind}"], figures[f"all_frames_per_s{kind}"]
        figures[f"two_threads_ratio{kind}"] = two_threads / one_thread
    figures.setdefault("ale_frames_per_s", None)
    figures["ale_ratio"] = figures["all_frames_per_s"] / figures["ale_frames_per_s"] if pong else None
    return figures | {"bytes_per_game": ram.ROW_BYTES, "games": GAMES}


def tempest_profile(seconds: float) -> Figures:
    """Nanoseconds that each part of a frame takes, timed alone over the same 1,024 games in the middle of play.

    Alone a part meets warm caches and branches it has learned: the parts add up to less than the whole, and the
    difference is what the processor loses on surprises.
    """
    games = taught_games(GAMES, frames=300)
    start = games.rows[games.rows[:, ram.GAME_STATE] == ram.PLAYING]
    observations = np.zeros((len(start), observation.VALUES), np.float32)

    def over_all(part: Callable[[Row], None]) -> Callable[[Rows], None]:
        @kernel
        def loop(rows: Rows) -> None:
            for g in range(len(rows)):
                part(rows[g])

        return loop

    @kernel
    def observe_all(rows: Rows, out: npt.NDArray[np.float32]) -> None:
        for g in range(len(rows)):
            observation.observe(rows[g], out[g])

    @kernel
    def whole_tick(row: Row) -> None:
        sim.step_game(row, True, False, False, 12)

    @kernel
    def advice(row: Row) -> None:
        teacher.advise(row, teacher.MEET)

    @kernel
    def both_rewards(row: Row) -> None:
        row[ram.PREVIOUS_KNOWN] = np.uint8(1 + 0 * (rewards.objective_reward(row) + rewards.subjective_reward(row)))

    parts = {
        "player_moves": player.move_player, "player_fires": player.fire, "nymphs": nymphs.move_nymphs,
        "enemies_move": enemies.move_enemies, "enemy_shots": enemies.move_enemy_shots,
        "player_shots": player.move_player_shots, "enemies_fire": enemies.enemies_fire, "hits": player.check_shots,
        "explosions": sim.run_blasts, "remembering": sim.remember, "whole_tick": whole_tick,
        "teacher": advice, "rewards": both_rewards,
    }  # fmt: skip
    loops = {name: over_all(part) for name, part in parts.items()}
    loops["observation"] = lambda rows: observe_all(rows, observations)
    rows = start.copy()
    found: dict[str, list[float]] = {}
    for name, loop in loops.items():
        took, side, began = found.setdefault(f"{name}_ns", []), timed(partial(loop, rows)), time.perf_counter()
        while len(took) < 5 or time.perf_counter() - began < seconds / len(loops):
            rows[:] = start
            took.append(side()[1] / len(start) * 1e9)
        del took[0]  # compiled
    return medians(found) | {"games": len(start)}


def _ale_pong() -> Side | None:
    """A slice of Pong in the Arcade Learning Environment, one act a frame; None where it is not installed."""
    try:
        import ale_py
        from ale_py import roms
    except ImportError:
        return None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path("pong"))  # type: ignore[arg-type]
    actions = ale.getMinimalActionSet()

    def play() -> None:
        for i in range(200):
            ale.act(actions[i // 8 % len(actions)])
            if ale.game_over():
                ale.reset_game()

    return timed(play, 200)
