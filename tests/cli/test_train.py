"""`protege train` as it is typed: settings that would be ignored, and those that older runs were stored with."""

from dataclasses import replace

import pytest

from protege.cli.__main__ import main
from protege.cli.train import read_options, renamed, stored_config
from protege.games import find_game, games
from protege.runs.run import RunError, create_run, flat, plain


@pytest.mark.parametrize(
    "words, answer",
    [
        ("tempest --learner rainbow --pqn.epsilon 0.1", "--pqn.epsilon would have no effect: it is a setting of "
         "learner pqn, and rainbow learns; use --rainbow.epsilon"),
        ("tempest --rainbow.epsilon=0.1", "pqn learns; use --pqn.epsilon"),
        ("tempest --rainbow.epsilon_frames 5", "--rainbow.epsilon-frames would have no effect"),
        ("tempest --rainbow.replay.capacity 5000", "pqn learns; use --learner rainbow"),
        ("tempest --rainbow.no-mixed-precision", "pqn learns; use --learner rainbow"),
        ("tempest --save-replay", "pqn learns; use --learner rainbow"),
        ("tempest --no-save-replay", "--save-replay would have no effect"),
        ("tempest --eval-every 5000", "only a deterministic run is evaluated by steps; use --eval-seconds"),
        ("tempest --deterministic --frames 5000 --eval-seconds 5", "goes by no clock; use --eval-every"),
        ("echelon --preset full --advisor hard",
         "--advisor would have no effect: nobody's advice is imitated; use --imitation 3"),
        ("echelon --eval-every 5", "use --eval-seconds"),
        ("tests.games.tiny:GAME --pulls 0 --minutes 1 --no-deterministic --eval-every 5", ""),
    ],
)  # fmt: skip
def test_a_setting_that_would_be_ignored_is_refused_with_the_one_that_works(words, answer, capsys):
    place, *rest = words.split()
    code = main(["train", place, *rest, "--dry-run"])
    told = capsys.readouterr().err.splitlines()
    assert (code, len(told)) == ((2, 1) if answer else (0, 0)) and answer in "".join(told)


@pytest.mark.parametrize("words", ["--learner rainbow --rainbow.epsilon 0.1", "--pqn.epsilon 0.1", "--eval-seconds 5"])
def test_a_setting_that_works_is_taken(words):
    game = find_game("tempest")
    read_options(game, game.trainer(), words.split())


def test_a_preset_is_where_settings_start_and_a_typed_budget_takes_the_place_of_the_other(tmp_path):
    game = find_game("echelon")
    trainer = game.trainer()
    assert read_options(game, trainer, []).config == trainer.presets["laptop"]
    small = read_options(game, trainer, ["--preset", "smoke", "--agent-steps", "500"]).config
    assert small == replace(trainer.presets["smoke"], minutes=0.0, agent_steps=500)
    full = read_options(game, trainer, ["--preset=full", "--minutes", "5"]).config
    assert full == replace(trainer.presets["full"], minutes=5.0, agent_steps=0)


def test_settings_of_older_runs_are_found_under_the_names_they_have_now():
    known = {"pqn.widths": 0, "rainbow.batch": 0, "rainbow.bc_weight": 0, "rainbow.epsilon": 0, "seed": 0}
    names = {
        "widths": "pqn.widths",
        "rainbow.learner.": "rainbow.",
        "rainbow.cloning": "rainbow.bc_weight",
        "seed": "x",
    }
    stored = {
        "widths": [64],
        "rainbow.learner.batch": 8,
        "rainbow.learner.cloning": 0.5,
        "rainbow.epsilon": 1,
        "seed": 3,
    }
    assert renamed(stored, names, known) == {
        "pqn.widths": [64], "rainbow.batch": 8, "rainbow.bc_weight": 0.5, "rainbow.epsilon": 1, "seed": 3
    }  # fmt: skip


@pytest.mark.parametrize("game", games().values(), ids=lambda game: game.name)
def test_every_new_name_of_a_setting_is_one(game):
    trainer = game.trainer()
    known = flat(plain(trainer.config()))
    for old, new in trainer.renamed.items():
        assert new[-1] == "." or new in known, f"{old} became {new}, which is no setting"
        assert old not in known, f"{old} is a setting still"


def stored(folder, settings, game="tempest"):
    create_run(game, "learner", settings, (), name="old", folder=folder).close()
    return stored_config("old", folder, find_game("tempest").trainer())


def test_settings_come_back_as_they_were_stored(tmp_path):
    config = find_game("tempest").trainer().presets["smoke"]
    assert stored(tmp_path, config) == config


def test_settings_of_another_game_or_of_no_game_are_refused(tmp_path):
    with pytest.raises(RunError, match="run old was trained on echelon, not on tempest"):
        stored(tmp_path / "a", {}, "echelon")
    with pytest.raises(RunError, match="settings this version does not know: magic, pqn.tricks"):
        stored(tmp_path / "b", {"magic": 1, "pqn": {"tricks": 2}})
    with pytest.raises(RunError, match="this version does not know: .*`seed`|Expected `int`"):
        stored(tmp_path / "c", {"seed": "one"})
