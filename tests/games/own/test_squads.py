"""Parallel PettingZoo environments: a row for each agent, one network, a critic that sees what all of them see."""

import json

import numpy as np
import pytest

from protege.cli.__main__ import main
from protege.games.own.agents.players import Random, play
from protege.games.own.world.arena import Arena
from protege.games.own.world.zoo import squad_world
from protege.seeds import TRAINING

HERE = "tests.games.own.worlds"
ROWERS = f"pettingzoo:{HERE}"


def test_members_of_a_squad_have_rows_of_their_own_and_end_together():
    arena = Arena(squad_world(ROWERS), 3, TRAINING, 7)
    assert arena.count == 6 and arena.observation[:, 1].tolist() == [0, 1, 0, 1, 0, 1]
    assert arena.number.tolist() == [0, 0, 1, 1, 2, 2] and arena.seeds[0] == arena.seeds[1] != arena.seeds[2]
    assert len(np.unique(arena.uniform())) == 6, "members do not roll the same dice"
    for _ in range(9):
        step = arena.step(np.ones(6, np.int64))
        if len(step.ended):
            break
    assert len(step.ended) % 2 == 0 and (step.last[:, 0] == 1.0).all()
    episodes = arena.taken_episodes()
    assert len(episodes) == len(step.ended) // 2 and arena.begun == 3 + len(episodes)
    frames = episodes[0].frames
    assert episodes[0].reward == pytest.approx(1.0 - 0.02 * (frames - 1), abs=1e-5), "the mean over the members"


def test_episodes_of_a_squad_follow_from_their_seeds():
    world = squad_world(ROWERS)
    assert play(world, Random(), 20, seed=3)[:4] == play(world, Random(), 4, seed=3)


@pytest.mark.parametrize("words", [(), ("--ppo.no-central",), ("--ppo.recurrent",)])
def test_a_squad_learns_to_pull_together(words, tmp_path, capsys):
    given = ["--preset", "smoke", "--frames", "20000", "--no-dashboard", "--compare", "0", "--deterministic"]
    assert main(["train", ROWERS, *given, *words, "--run", "mine", "--runs", str(tmp_path)]) == 0
    capsys.readouterr()
    players = ["--player", "mine", "--player", "random"]
    assert main(["eval", ROWERS, *players, "--games", "50", "--runs", str(tmp_path), "--json"]) == 0
    mine, random = (json.loads(line) for line in capsys.readouterr().out.splitlines()[-2:])
    assert mine["return_mean_low"] > max(0.5, random["return_mean_high"])


@pytest.mark.parametrize(
    "place, words, said",
    [
        ("pettingzoo:no.such.module", (), "module no.such.module cannot be imported"),
        ("pettingzoo:json", (), "module json has no function parallel_env"),
        (f"{ROWERS}?fault=spaces", (), "agents share one network, so their observation spaces must be alike"),
        (f"{ROWERS}?fault=blind", (), "an observation of bow was expected, and none came"),
        (f"{ROWERS}?fault=leaves", (), "agents that leave before the others are not supported"),
        (f"{ROWERS}?wrong=1", (), "cannot be made: TypeError"),
        (
            ROWERS,
            ("--teacher", f"{HERE}:teach_with_env"),
            "a teacher of a squad is a function over an agent's observation",
        ),
    ],
)
def test_what_is_wrong_with_it_is_told_in_one_line(place, words, said, tmp_path, capsys):
    assert main(["eval", place, "--games", "20", *words, "--runs", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("protege: ") and said in line


def test_only_ppo_trains_squads(tmp_path, capsys):
    assert main(["train", ROWERS, "--preset", "smoke", "--learner", "pqn", "--runs", str(tmp_path)]) == 2
    assert "is played by a squad, which only ppo can train" in capsys.readouterr().err
