"""Every way in which somebody's environment or teacher can be wrong is one clear line that names it."""

import pytest

from protege.cli.__main__ import main

HERE = "tests.games.own.worlds"
BROKEN = f"gym:{HERE}:tests/Broken-v0?fault="
WALK = f"gym:{HERE}:tests/Walk-v0"
PUSHED = f"gym:{HERE}:tests/PushedWalk-v0"

BAD = [
    ("gym:Nowhere-v0", "", "gym:Nowhere-v0: there is no such environment"),
    ("gym:CartPole-v77", "", "there is no such environment"),
    ("gym:no.such.module:Walk-v0", "", "module no.such.module cannot be imported"),
    (f"{BROKEN}makes", "", "cannot be made: RuntimeError: no display here"),
    (f"gym:{HERE}:tests/Seedless-v0", "", "reset must take a seed"),
    (f"{BROKEN}reset", "", "reset raised OSError: the level file is missing"),
    (f"{BROKEN}bare", "", "reset must give an observation and a dict, and gave a ndarray"),
    (f"{BROKEN}nan", "", "a number was expected, and nan came in observation [1]"),
    (f"{BROKEN}nan%20reward", "", "a number was expected, and the reward nan came"),
    (f"{BROKEN}no%20reward", "", "a reward that is a number was expected, and None came"),
    (f"{BROKEN}shape", "", "an observation of shape (2,) was expected, and (3,) came"),
    (f"{BROKEN}four", "", "step must give observation, reward, terminated, truncated and a dict: not enough values"),
    (f"{BROKEN}done", "", "an episode ends with terminated or truncated True, else both are False; got None and False"),
    (f"{BROKEN}raises", "", "raised ZeroDivisionError: division by zero"),
    (f"{BROKEN}text", "", "observations in Text"),
    (f"{BROKEN}sequence", "", "actions in Sequence"),
    (f"{BROKEN}unbounded", "", "are not supported; expected Discrete, MultiDiscrete, MultiBinary, or a Box"),
    (WALK, "nonsense", "there is no teacher 'nonsense': expected package.module:name"),
    (WALK, "no.module:teach", "teacher 'no.module:teach' cannot be imported"),
    (WALK, f"{HERE}:nobody", "cannot be imported: module 'tests.games.own.worlds' has no attribute 'nobody'"),
    (WALK, f"{HERE}:NUMBER", "is a int that cannot be called"),
    (WALK, f"{HERE}:Needy", "cannot be made"),
    (WALK, f"{HERE}:three", "takes one, two, three"),
    (WALK, f"{HERE}:too_far", "the teacher is wrong: an action in Discrete(2) was expected, and array([2"),
    (WALK, f"{HERE}:not_whole", "the teacher is wrong: an action in Discrete(2) was expected"),
    (WALK, f"{HERE}:nothing", "the teacher is wrong: an action in Discrete(2) was expected"),
    (WALK, f"{HERE}:fails", "the teacher raised KeyError: 'speed'"),
    (PUSHED, f"{HERE}:too_hard", "the teacher is wrong: numbers in Box"),
]


@pytest.mark.parametrize(
    "place, teacher, said", BAD, ids=[f"{place[-30:]} {teacher[-10:]}" for place, teacher, _ in BAD]
)
def test_it_is_told_in_one_line(place, teacher, said, tmp_path, capsys):
    words = ["--teacher", teacher] if teacher else []
    who = ["--player", "teacher"] if teacher else []
    assert main(["eval", place, *words, *who, "--games", "2", "--runs", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("protege: ") and said in line
    assert teacher.split(":")[0] in line or place.split("?")[0] in line or teacher in line


def test_a_training_ends_with_the_same_line(tmp_path, capsys):
    words = ["--preset", "smoke", "--frames", "1000", "--no-dashboard", "--runs", str(tmp_path), "--eval-games", "2"]
    assert main(["train", f"{BROKEN}raises", *words]) == 2
    assert "step(0) raised ZeroDivisionError" in capsys.readouterr().err.replace("step(1)", "step(0)")


@pytest.mark.parametrize(
    "place, words, said",
    [
        (PUSHED, ["--learner", "pqn"], "learner pqn chooses one of several: use --learner ppo"),
        (WALK, ["--deterministic"], "a deterministic run needs a budget in frames"),
        (WALK, ["--learner", "pqn", "--pqn.minibatch", "100000"], "is smaller than one minibatch"),
        (WALK, ["--learner", "ppo", "--ppo.horizon", "100"], "horizon 100 must be a multiple of chunk 16"),
        (
            WALK,
            ["--learner", "pqn", "--ppo.epochs", "3"],
            "a setting of learner ppo, and pqn learns; use --pqn.epochs",
        ),
        (WALK, ["--teacher-fraction", "0.2"], "there is no teacher; use --teacher"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(place, words, said, tmp_path, capsys):
    few = ["--preset", "smoke", "--no-dashboard", "--runs", str(tmp_path)]  # in case it is not refused
    assert main(["train", place, *few, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_player_of_another_game_is_refused(tmp_path, capsys):
    words = ["--preset", "smoke", "--frames", "300", "--no-dashboard", "--runs", str(tmp_path), "--compare", "0"]
    assert main(["train", WALK, *words, "--run", "walker", "--eval-games", "2"]) == 0
    assert main(["eval", PUSHED, "--player", "walker", "--runs", str(tmp_path)]) == 2
    assert "is a checkpoint of gym-tests.games.own.worlds-tests-Walk-v0-pupil, expected gym-" in capsys.readouterr().err
    assert main(["eval", WALK, "--player", "teacher", "--runs", str(tmp_path)]) == 2
    assert "no player named 'teacher': use random" in capsys.readouterr().err
