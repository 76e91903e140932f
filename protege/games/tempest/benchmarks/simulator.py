"""How fast the Tempest simulator is, beside the Arcade Learning Environment, and where its time goes."""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from protege.slices import Figures, Side, alternate


def tempest_sim(seconds: float) -> Figures:
    """Frames per second of the simulator: rules alone, and with observation, teacher and rewards.

    The teacher plays, from levels 1 to 40. The rules alone replay its moves game by game, and again all games in step,
    as a learner needs them.
    """
    from protege.games.tempest.agents.players import words
    from protege.games.tempest.rules import ram, sim
    from protege.games.tempest.task.env import Games, starts

    count = 1024
    turns = iter(range(1, 1_000_000))

    def renew(games: Games) -> None:
        over = np.flatnonzero(games.frames.over)
        if len(over):
            games.put(over, starts(len(over), level=[1 + i % 40 for i in over.tolist()], seed=next(turns)))

    def games_of(threads: int) -> Games:
        games = Games(starts(count, level=[1 + i % 40 for i in range(count)]), threads=threads)
        for _ in range(200):  # past the quiet beginning of a game
            games.step(games.frames.advice)
            renew(games)
        return games

    def everything(games: Games) -> Side:
        def side() -> tuple[int, float]:
            renew(games)  # untimed: starting games is no part of a frame
            before = words(games.rows, ram.FRAMES)
            began = time.perf_counter()
            for _ in range(32):
                games.step(games.frames.advice)
            took = time.perf_counter() - began
            return int((words(games.rows, ram.FRAMES) - before).sum()), took

        return side

    one = games_of(1)
    start = one.rows.copy()
    commands = []
    for _ in range(96):  # the teacher's moves from here, so that the rules can be timed alone
        commands.append(one.frames.advice.copy())
        one.step(commands[-1])
    rows = start.copy()

    moves = np.array(commands)

    def rules_alone() -> tuple[int, float]:
        rows[:] = start
        began = time.perf_counter()
        sim.replay_games(rows, moves)
        return int((words(rows, ram.FRAMES) - words(start, ram.FRAMES)).sum()), time.perf_counter() - began

    def rules_in_step() -> tuple[int, float]:
        rows[:] = start
        began = time.perf_counter()
        for command in commands:
            sim.step_games(rows, 0, count, command, True)
        return int((words(rows, ram.FRAMES) - words(start, ram.FRAMES)).sum()), time.perf_counter() - began

    rules_alone(), rules_in_step()  # compile
    sides: dict[str, Side] = {
        "sim_frames_per_s": rules_alone,
        "sim_frames_per_s_in_step": rules_in_step,
        "all_frames_per_s": everything(one),
        "all_frames_per_s_2_threads": everything(games_of(2)),
    }
    pong = _ale_pong()
    if pong is not None:
        sides["ale_frames_per_s"] = pong
    figures: Figures = dict(alternate(sides, seconds))
    for kind in ("", "_quiet"):
        two_threads, one_thread = figures[f"all_frames_per_s_2_threads{kind}"], figures[f"all_frames_per_s{kind}"]
        figures[f"two_threads_ratio{kind}"] = two_threads / one_thread
    figures.setdefault("ale_frames_per_s", None)
    figures["ale_ratio"] = figures["all_frames_per_s"] / figures["ale_frames_per_s"] if pong else None
    return figures | {"bytes_per_game": ram.ROW_BYTES, "games": count}


def tempest_profile(seconds: float) -> Figures:
    """Nanoseconds that each part of a frame takes, timed alone over the same 1,024 games in the middle of play.

    Alone a part meets warm caches and branches it has learned: the parts add up to less than the whole, and the
    difference is what the processor loses on surprises.
    """
    from protege.games.tempest.rules import enemies, nymphs, player, ram, sim
    from protege.games.tempest.rules.ram import Row, Rows
    from protege.games.tempest.task import env, observation, rewards, teacher
    from protege.kernels import kernel

    games = env.Games(env.starts(1024, level=[1 + i % 40 for i in range(1024)]))
    for _ in range(300):
        games.step(games.frames.advice)
    start = games.rows[games.rows[:, ram.GAME_STATE] == ram.PLAYING]
    seen = np.zeros((len(start), observation.VALUES), np.float32)

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
    loops["observation"] = lambda rows: observe_all(rows, seen)
    figures: Figures = {}
    rows = start.copy()
    for name, loop in loops.items():
        took: list[float] = []
        began = time.perf_counter()
        while len(took) < 5 or time.perf_counter() - began < seconds / len(loops):
            rows[:] = start
            before = time.perf_counter()
            loop(rows)
            took.append(time.perf_counter() - before)
        figures[f"{name}_ns"] = float(np.median(took[1:])) / len(start) * 1e9
    return figures | {"games": len(start)}


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

    def slice_of_pong() -> tuple[int, float]:
        began = time.perf_counter()
        for i in range(200):
            ale.act(actions[i // 8 % len(actions)])
            if ale.game_over():
                ale.reset_game()
        return 200, time.perf_counter() - began

    return slice_of_pong
