"""Tempest through Gymnasium: one game or many, the same games for the same seeds, endings kept apart."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import protege.games.tempest.task  # noqa: F401 - registers the environment
from protege import ProtegeError
from protege.games.tempest.rules import ram, sim
from protege.games.tempest.task import drawing, observation
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import Games, starts
from protege.games.tempest.task.gym import Options, TempestEnv, TempestVectorEnv
from protege.games.tempest.task.observation import HIDDEN
from protege.seeds import TRAINING, seed_of

NAME = "protege.games.tempest.task:protege/Tempest-v0"
STAY = 0  # no button, no turn
FIRE = 22
DEATHS = {f"deaths_{name}" for name in ram.DEATH_NAMES}


def play(env, policy, most=20_000):
    """One episode after a reset: everything the steps gave."""
    steps = []
    info: dict[str, int] = {}
    for _ in range(most):
        steps.append(env.step(policy(info)))
        *_, terminated, truncated, info = steps[-1]
        if terminated or truncated:
            return steps
    raise AssertionError(f"no end within {most} frames")


def teacher(info):
    return info.get("teacher_action", FIRE)


# --- making one ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"level": 9, "episode": "life", "reward": "score", "render_mode": "rgb_array"}]
)
def test_gymnasiums_own_checker_is_content(options):
    check_env(gymnasium.make(NAME, **options).unwrapped)


def test_make_gives_the_level_lives_and_difficulty_asked_for():
    env = gymnasium.make(NAME, level=9, lives=3, difficulty="medium")
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space and env.action_space == gymnasium.spaces.Discrete(44)
    assert env.observation_space == gymnasium.spaces.Box(-1.0, 1.0, (195,), np.float32)
    assert (info["level"], info["lives"], info["score"], info["frame"]) == (9, 3, 0, 0)
    hard = gymnasium.make(NAME, level=9, lives=5, bonus=0, difficulty="hard").unwrapped
    assert isinstance(hard, TempestEnv)
    hard.reset(seed=1)
    row = np.frombuffer(hard.get_state(), np.uint8)
    assert (row[ram.LIVES], row[ram.BONUS_INTERVAL], row[ram.DIFFICULTY]) == (5, 0, 2)


def test_make_vec_uses_the_batched_engine():
    envs = gymnasium.make_vec(NAME, num_envs=64, level=3)
    assert isinstance(envs, TempestVectorEnv)
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    observations, infos = envs.reset(seed=1)
    assert observations in envs.observation_space and observations.shape == (64, 195)
    assert infos["level"].tolist() == [3] * 64 and infos["_level"].all()
    observations, rewards, *_ = envs.step(envs.action_space.sample())
    assert observations in envs.observation_space and rewards.shape == (64,)


def test_importing_the_game_registers_it_without_loading_the_compiler():
    words = (
        "import sys, protege.games.tempest.task, gymnasium; assert 'protege/Tempest-v0' in gymnasium.registry; "
        "print(sorted({'numba', 'torch', 'protege.games.tempest.task.env'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


# --- seeds -----------------------------------------------------------------------------------------------------------


def test_a_seed_names_its_games():
    env = TempestEnv(level=5)
    env.reset(seed=8)
    first = env.get_state()
    env.reset()
    second = env.get_state()
    cabinet = sim.Cabinet()
    for state, number in ((first, 0), (second, 1)):
        assert state == sim.start_game(5, cabinet, seed_of(TRAINING, 8, number)).tobytes()
    env.reset(seed=8)
    assert env.get_state() == first
    env.reset(seed=9)
    assert env.get_state() not in (first, second)


def test_without_a_seed_every_environment_plays_another_game():
    states = set()
    for _ in range(4):
        env = TempestEnv()
        env.reset()
        states.add(env.get_state())
    assert len(states) == 4


@pytest.mark.parametrize("episode", ["game", "life"])
def test_one_game_and_many_play_the_same_trajectories(episode):
    """Gymnasium's own loop over single environments is the yardstick, endings, resets and infos included."""
    options = {"level": 17, "episode": episode, "max_frames": 300, "visible_only": True}
    many = TempestVectorEnv(6, **options)
    singles = gymnasium.vector.SyncVectorEnv([lambda: TempestEnv(**options)] * 6)
    generator = np.random.default_rng(4)
    (observation, infos), (expected, expected_infos) = many.reset(seed=31), singles.reset(seed=31)
    endings = np.zeros(2, np.int64)
    for frame in range(1500):
        assert np.array_equal(observation, expected)
        assert infos.keys() == expected_infos.keys()
        for name in infos:
            assert np.array_equal(infos[name], expected_infos[name]), (frame, name)
        actions = generator.integers(0, len(ACTIONS), 6)
        teaching = generator.random(6) < 0.5
        actions = np.where(teaching, infos["teacher_action"], actions)
        observation, *rest, infos = many.step(actions)
        expected, *expected_rest, expected_infos = singles.step(actions)
        for ours, theirs in zip(rest, expected_rest):
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
        endings += [rest[1].sum(), rest[2].sum()]
    assert endings.min() > 0, "the test must see both kinds of endings"


def test_threads_change_nothing():
    one, two = TempestVectorEnv(5, threads=1), TempestVectorEnv(5, threads=2)
    assert np.array_equal(one.reset(seed=2)[0], two.reset(seed=2)[0])
    for i in range(200):
        actions = np.full(5, (7 * i) % 44)
        for ours, theirs in zip(one.step(actions)[:4], two.step(actions)[:4]):
            assert np.array_equal(ours, theirs)


# --- episodes --------------------------------------------------------------------------------------------------------


def test_a_game_episode_ends_with_the_last_life():
    env = TempestEnv(lives=2, bonus=0)
    env.reset(seed=5)
    steps = play(env, lambda info: STAY)
    lives = [info["lives"] for *_, info in steps]
    assert [terminated for _, _, terminated, _, _ in steps] == [False] * (len(steps) - 1) + [True]
    assert not any(truncated for *_, truncated, _ in steps)
    assert lives[0] == 2 and lives[-1] == 0 and sorted(lives, reverse=True) == lives
    final = steps[-1][-1]
    assert sum(final[name] for name in DEATHS) == 2 and final["frame"] == len(steps)
    assert all(not DEATHS & info.keys() for *_, info in steps[:-1])


def test_a_life_episode_ends_with_each_life_and_the_next_one_goes_on_with_the_game():
    whole, lives = TempestEnv(lives=3, bonus=0), TempestEnv(lives=3, bonus=0, episode="life")
    whole.reset(seed=5)
    lives.reset(seed=5)
    expected = play(whole, lambda info: STAY)
    found = []
    for life in range(3):
        episode = play(lives, lambda info: STAY)
        found += episode
        assert sum(episode[-1][-1][name] for name in DEATHS) == life + 1
        observation, info = lives.reset()
        if life < 2:
            assert np.array_equal(observation, episode[-1][0]) and info["frame"] == len(found)
    assert [(step[1], step[-1]["score"]) for step in found] == [(step[1], step[-1]["score"]) for step in expected]
    assert (info["frame"], info["lives"]) == (0, 3), "after the last life a new game begins"


def test_leaving_a_life_before_its_end_begins_a_new_game():
    env = TempestEnv(episode="life")
    env.reset(seed=5)
    for _ in range(10):
        env.step(FIRE)
    assert env.reset()[1]["frame"] == 0


@pytest.mark.parametrize("episode", ["game", "life"])
def test_a_game_that_is_cut_is_truncated_and_not_terminated(episode):
    env = TempestEnv(max_frames=50, episode=episode)
    env.reset(seed=1)
    steps = play(env, teacher)
    assert len(steps) == 50
    assert steps[-1][2:4] == (False, True) and all(step[2:4] == (False, False) for step in steps[:-1])
    assert env.reset()[1]["frame"] == 0


def test_a_death_on_the_last_frame_allowed_is_a_death_and_the_game_is_not_resumed():
    env = TempestEnv(episode="life")
    env.reset(seed=5)
    frames = len(play(env, lambda info: STAY))
    env = TempestEnv(episode="life", max_frames=frames)
    env.reset(seed=5)
    assert play(env, lambda info: STAY)[-1][2:4] == (True, False)
    assert env.reset()[1]["frame"] == 0


def test_the_step_after_an_end_begins_the_next_episode_and_ignores_its_action():
    envs = TempestVectorEnv(2, max_frames=3)
    envs.reset(seed=6)
    for frame in range(3):
        last, _, terminated, truncated, infos = envs.step(np.array([FIRE, FIRE]))
        assert truncated.tolist() == [frame == 2] * 2 and not terminated.any()
    assert infos["_deaths_shot"].all() and infos["frame"].tolist() == [3, 3]
    fresh, rewards, terminated, truncated, infos = envs.step(np.array([FIRE, STAY]))
    assert rewards.tolist() == [0.0, 0.0] and not (terminated | truncated).any() and "deaths_shot" not in infos
    assert infos["frame"].tolist() == [0, 0] and (fresh != last).any(axis=1).all()


# --- rewards, observation, advice ------------------------------------------------------------------------------------


def test_score_rewards_add_up_to_the_score():
    env = TempestEnv(reward="score", level=3)
    env.reset(seed=2)
    steps = play(env, teacher)
    assert sum(step[1] for step in steps) == steps[-1][-1]["score"] > 0
    assert steps[-1][-1]["start_bonus"] in (0, 6000), "the bonus for starting at level 3 is kept apart"


def test_shaped_rewards_are_those_of_the_games():
    env, games = TempestEnv(), Games(starts(1, seed=2))
    env.reset(seed=2)
    for i in range(500):
        action = (5 * i) % 44
        reward = env.step(action)[1]
        assert reward == games.step(np.array([action])).reward[0]


def test_visible_only_hides_exactly_the_counters_nobody_can_see():
    full, visible = TempestEnv(), TempestEnv(visible_only=True)
    full.reset(seed=2)
    visible.reset(seed=2)
    hidden = np.zeros(195, np.bool_)
    hidden[list(HIDDEN)] = True
    seen_of_hidden = 0.0
    for _ in range(200):
        whole, part = full.step(FIRE)[0], visible.step(FIRE)[0]
        assert np.array_equal(whole[~hidden], part[~hidden]) and not part[hidden].any()
        seen_of_hidden = max(seen_of_hidden, float(np.abs(whole[hidden]).max()))
    assert seen_of_hidden > 0


def test_the_teachers_advice_is_the_command_it_would_play():
    envs = TempestVectorEnv(16, level=11)
    games = Games(starts(1, seed=40, level=11))
    _, infos = envs.reset(seed=40)
    for _ in range(300):
        action = int(infos["teacher_action"][0])
        assert ACTIONS[action].tolist() == games.frames.advice[0].tolist()
        games.step(np.array([action]))
        infos = envs.step(infos["teacher_action"])[-1]


# --- state -----------------------------------------------------------------------------------------------------------


def test_a_state_replays_identically_here_and_in_another_environment():
    env = TempestEnv(level=11)
    env.reset(seed=3)
    for i in range(150):
        env.step((11 * i) % 44)
    state = env.get_state()
    assert len(state) == ram.ROW_BYTES

    def go_on(env):
        return [env.step((13 * i) % 44) for i in range(400)]

    expected = go_on(env)
    other = TempestEnv(level=1)
    for again in (env, other):
        observation, info = again.set_state(state)
        assert info["frame"] == 150 and observation in again.observation_space
        assert again.get_state() == state, "looking at a state does not change it"
        for ours, theirs in zip(go_on(again), expected):
            assert np.array_equal(ours[0], theirs[0]) and ours[1:] == theirs[1:]


def test_setting_a_state_leaves_the_sequence_of_games_alone():
    env = TempestEnv()
    env.reset(seed=3)
    state = env.get_state()
    env.reset()
    second = env.get_state()
    env.reset(seed=3)
    env.set_state(state)
    env.reset()
    assert env.get_state() == second


def test_a_state_that_is_no_state_is_refused():
    env = TempestEnv()
    with pytest.raises(ProtegeError, match=f"{ram.ROW_BYTES} bytes; got 100"):
        env.set_state(bytes(100))
    with pytest.raises(ProtegeError, match="must be that of a frame"):
        env.set_state(bytes(ram.ROW_BYTES))


def test_the_state_of_a_finished_game_can_be_looked_at_and_not_played():
    env = TempestEnv(lives=2)
    env.reset(seed=5)
    play(env, lambda info: STAY)
    env.set_state(env.get_state())
    with pytest.raises(ProtegeError, match="ended"):
        env.step(STAY)
    assert env.reset()[1]["frame"] == 0


# --- pictures --------------------------------------------------------------------------------------------------------


def test_a_picture_shows_the_game():
    env = TempestEnv(render_mode="rgb_array", level=2)
    env.reset(seed=1)
    before = env.render()
    assert before.shape == (480, 480, 3) and before.dtype == np.uint8
    assert (before.max(axis=2) > 100).sum() > 1000, "a tube, a claw and a score are more than a few bright pixels"
    for _ in range(40):
        env.step(FIRE + 1)
    after = env.render()
    assert (np.abs(before.astype(int) - after).max(axis=2) > 100).sum() > 100
    assert np.array_equal(after, drawing.render(np.frombuffer(env.get_state(), np.uint8)))


def test_many_games_give_many_pictures():
    envs = gymnasium.make_vec(NAME, num_envs=2, render_mode="rgb_array")
    envs.reset(seed=1)
    pictures = envs.render()
    assert isinstance(pictures, tuple) and [np.shape(picture) for picture in pictures] == [(480, 480, 3)] * 2


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0}, "level must be 1 to 99; got 0"),
        ({"level": 100}, "level must be 1 to 99; got 100"),
        ({"level": 1.5}, "level must be a whole number; got 1.5"),
        ({"lives": 9}, "lives must be 2 to 5.*got 9"),
        ({"lives": "3"}, "lives must be a whole number; got '3'"),
        ({"bonus": 8}, "bonus must be 0 .*got 8"),
        ({"difficulty": "brutal"}, "difficulty must be one of easy, medium, hard; got 'brutal'"),
        ({"episode": "level"}, "episode must be one of game, life; got 'level'"),
        ({"reward": "fun"}, "reward must be one of shaped, score; got 'fun'"),
        ({"max_frames": 0}, "max_frames must be a whole number from 1 on, or None for no limit; got 0"),
        ({"render_mode": "human"}, "render_mode must be rgb_array or None; got 'human'"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(options, message):
    for make in (TempestEnv, lambda **given: TempestVectorEnv(2, **given)):
        with pytest.raises(ProtegeError, match=message) as problem:
            make(**options)
        assert "\n" not in str(problem.value)


def test_bad_options_are_refused_through_make_too():
    for make in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(ProtegeError, match="level must be 1 to 99; got 0"):
            make(NAME, level=0)


@pytest.mark.parametrize("action", [44, -1, float("nan"), 3.0, True, None, "fire", [3]])
def test_actions_that_are_none_are_refused(action):
    env = TempestEnv()
    env.reset(seed=1)
    with pytest.raises(ProtegeError, match="an action is a whole number 0 to 43; got"):
        env.step(action)
    env.step(43)


@pytest.mark.parametrize("actions", [[0, 44], [0, -1], [0.0, float("nan")], [0], [[0], [0]], [True, False], None])
def test_batches_of_actions_that_are_none_are_refused_and_change_nothing(actions):
    envs = TempestVectorEnv(2)
    envs.reset(seed=1)
    with pytest.raises(ProtegeError, match="actions are 2 whole numbers 0 to 43; got"):
        envs.step(actions)
    assert envs.step(np.array([0, 43]))[-1]["frame"].tolist() == [1, 1]


def test_nothing_works_before_the_first_reset():
    env, envs = TempestEnv(render_mode="rgb_array"), TempestVectorEnv(2, render_mode="rgb_array")
    for call in (lambda: env.step(0), env.render, env.get_state, lambda: envs.step(np.zeros(2, np.int64)), envs.render):
        with pytest.raises(ProtegeError, match="call reset"):
            call()


def test_nothing_is_played_after_the_end():
    env = TempestEnv(max_frames=2)
    env.reset(seed=1)
    play(env, teacher)
    with pytest.raises(ProtegeError, match="has ended: call reset"):
        env.step(0)


def test_drawing_must_be_asked_for_when_the_environment_is_made():
    env = TempestEnv()
    env.reset(seed=1)
    with pytest.raises(ProtegeError, match='render_mode="rgb_array"'):
        env.render()


@pytest.mark.parametrize("options", [{"num_envs": 0}, {"num_envs": 2.5}, {"num_envs": 2, "threads": 0}])
def test_there_is_at_least_one_game_and_one_thread(options):
    with pytest.raises(ProtegeError, match="must be a whole number from 1 on; got"):
        TempestVectorEnv(**options)


def test_a_list_of_seeds_gives_each_game_its_own():
    envs, single = TempestVectorEnv(2), TempestEnv()
    observations, _ = envs.reset(seed=[9, 4])
    assert np.array_equal(observations[1], single.reset(seed=4)[0])
    with pytest.raises(ProtegeError, match="2 seeds are needed, one for each game; got 3"):
        envs.reset(seed=[1, 2, 3])


# --- the game card ---------------------------------------------------------------------------------------------------

CARD = (Path(__file__).parents[4] / "docs" / "tempest.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", CARD, re.DOTALL))
def test_the_game_cards_examples_run(code):
    names: dict[str, Any] = {}
    exec(compile(code, "docs/tempest.md", "exec"), names)
    if "Restless" in names:
        games = Games(starts(3, seed=1))
        games.step(names["Restless"]().act(games.frames))


def test_the_game_card_lists_every_value_once_and_in_order():
    section = CARD[CARD.index("## Observation") : CARD.index("## Rewards")]
    listed: list[int] = []
    for first, last in re.findall(r"^\| (\d+)(?:-(\d+))? \|", section, re.MULTILINE):
        listed += range(int(first), int(last or first) + 1)
    assert listed == list(range(195))
    for line in section.splitlines():
        for name in re.findall(r"`([A-Z_]+)`", line):
            assert hasattr(observation, name), f"observation.py has no {name}"
            place = re.match(r"\| (\d+)(?:-(\d+))? \|", line)
            chosen = getattr(observation, name)
            if place and isinstance(chosen, slice):
                assert chosen.start == int(place[1])


def test_the_game_card_lists_every_option():
    section = CARD[CARD.index("## Options") : CARD.index("## The teacher")]
    listed = {
        name for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    assert listed == {field.name for field in fields(Options) if field.init} | {"render_mode", "num_envs", "threads"}
