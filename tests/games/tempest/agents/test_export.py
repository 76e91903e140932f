"""Pupils as ONNX models: exported for real, run by onnxruntime, compared, described; and what is refused."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import protege
from protege import ProtegeError
from protege.cli import __main__ as cli
from protege.games.tempest.agents.export import ExportError, export
from protege.games.tempest.agents.network import CHECKPOINT_KIND, Pupil, ValueNetwork
from protege.games.tempest.agents.players import find_player
from protege.games.tempest.agents.rainbow import load_pupil
from protege.games.tempest.task import observation
from protege.games.tempest.task.env import TASK_VERSION, Games, starts
from protege.learn.state import named_weights
from protege.runs import checkpoints
from protege.runs.metrics import Metric
from protege.runs.run import create_run
from tests.games.tempest.task.scenes import observed, random_images, row_of, save_rainbow

needs_onnx = pytest.mark.needs("onnx", "onnxscript", "onnxruntime")
FILES = ["README.md", "description.json", "model.onnx"]


def make_run(folder: Path, *, visible_only: bool = False, kind: str = CHECKPOINT_KIND, **state) -> ValueNetwork:
    """A run that has just saved its best pupil, which knows nothing yet."""
    torch.manual_seed(5)
    network = ValueNetwork((32, 16))
    state = {"widths": [32, 16], "visible_only": visible_only, "frames": 1_500_000} | state
    with create_run("tempest", "pqn", {}, [Metric("loss", "", "", "")], name="early", folder=folder) as run:
        tensors = named_weights(network, "network")
        checkpoints.save(run.best, tensors, state, kind=kind, task_version=TASK_VERSION)
    return network


@pytest.fixture(scope="module", params=[False, True], ids=["all values", "visible only"])
def exported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    network = make_run(folder / "runs", visible_only=request.param, points_per_life=5432.1)
    made = export("early", folder / "out", folder / "runs")
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(folder / "out" / "model.onnx", providers=["CPUExecutionProvider"])
    return SimpleNamespace(
        folder=folder / "out",
        made=made,
        pupil=Pupil(network, visible_only=request.param),
        run=lambda values: session.run(None, {"observation": values})[0],
        about=json.loads((folder / "out" / "description.json").read_text()),
    )


@pytest.fixture(scope="module")
def frames():
    """Frames that the check has not seen: other seeds, random play."""
    games = Games(starts(40, seed=77, level=[*range(1, 81, 2)]))
    seen = []
    for _ in range(150):
        seen.append(games.frames.observation[~games.frames.over])
        games.step(find_player("random").act(games.frames))
    return np.concatenate(seen)


# --- The model --------------------------------------------------------------------------------------------------------


@needs_onnx
@pytest.mark.slow
def test_the_model_values_moves_as_the_pupil_does(exported, frames):
    expected = exported.pupil.values(frames)
    found = exported.run(frames)
    assert found.shape == (len(frames), 44) and found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5
    second, first = np.sort(expected, axis=1)[:, -2:].T
    clear = first - second > 1e-4
    assert clear.mean() > 0.9 and np.array_equal(found.argmax(1)[clear], expected.argmax(1)[clear])
    assert len(np.unique(found.argmax(1))) > 1, "a model that always does the same would prove little"


@needs_onnx
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"self_attention": True, "visible_only": True}, {"separate_heads": True}])
def test_a_rainbow_pupil_is_exported_too(tmp_path, frames, options):
    path = save_rainbow(tmp_path, **options)
    made = export(str(path), tmp_path / "out")
    assert made["difference_torch"] < 1e-4 and made["difference_played"] < 1e-4
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"observation": frames[:500]})
    assert found == pytest.approx(load_pupil(path).values(frames[:500]), abs=1e-3)
    about = json.loads((tmp_path / "out" / "description.json").read_text())
    assert about["source"]["visible_only"] == options.get("visible_only", False)


@needs_onnx
@pytest.mark.slow
@pytest.mark.parametrize("games", [1, 2, 17])
def test_any_number_of_games_fits(exported, frames, games):
    whole = exported.run(frames[:17])
    assert exported.run(frames[:games]) == pytest.approx(whole[:games], abs=1e-5)


@needs_onnx
@pytest.mark.slow
def test_the_model_knows_the_hidden_values_only_where_the_pupil_does(exported, frames):
    changed = frames.copy()
    changed[:, list(observation.HIDDEN)] = 0.7
    same = np.array_equal(exported.run(changed), exported.run(frames))
    assert same == exported.pupil.visible_only


@needs_onnx
@pytest.mark.slow
def test_the_report_says_what_was_checked(exported):
    made = exported.made
    assert made["frames"] > 1000 and made["same_moves"] >= 0.999 * made["frames"]
    assert 0 < made["difference_played"] < 1e-5 and 0 <= made["difference_torch"] < 1e-5
    assert made["bytes"] == (exported.folder / "model.onnx").stat().st_size
    assert exported.about["check"]["frames"] == made["frames"]


@needs_onnx
@pytest.mark.slow
def test_nothing_of_the_machine_is_in_the_files(exported):
    assert sorted(path.name for path in exported.folder.iterdir()) == FILES
    for path in exported.folder.iterdir():
        content = path.read_bytes()
        for place in (Path(protege.__file__).parent, Path(torch.__file__).parent, exported.folder.parent):
            assert str(place).encode() not in content, path.name


# --- What stands beside it --------------------------------------------------------------------------------------------


@needs_onnx
@pytest.mark.slow
def test_the_description_names_every_value_and_every_move(exported):
    about = exported.about
    assert [value["name"] for value in about["input"]["values"]] == list(observation.NAMES)
    assert about["input"]["shape"] == ["games", 195] and about["output"]["shape"] == ["games", 44]
    moves = about["output"]["actions"]
    assert [move["index"] for move in moves] == list(range(44))
    assert moves[0] == {"index": 0, "fire": 0, "zap": 0, "spinner": 0}
    assert moves[12] == {"index": 12, "fire": 0, "zap": 1, "spinner": 12}  # 11 spinner levels for each button pair
    assert moves[43] == {"index": 43, "fire": 1, "zap": 1, "spinner": -12}
    assert [value["index"] for value in about["input"]["values"] if value["hidden"]] == list(observation.HIDDEN)


@needs_onnx
@pytest.mark.slow
def test_the_description_says_where_the_pupil_comes_from_and_how_well_it_plays(exported):
    about = exported.about
    assert about["task_version"] == TASK_VERSION and about["scores"] == {"points_per_life": 5432.1}
    source = about["source"]
    assert (source["player"], source["checkpoint"], source["frames"]) == ("early", "best.safetensors", 1_500_000)
    assert source["protege"] == protege.__version__ and source["visible_only"] == exported.pupil.visible_only
    text = (exported.folder / "README.md").read_text()
    assert "points per life: 5,432" in text and "1,500,000 frames" in text
    assert ("ignores the 16 hidden values" in text) == exported.pupil.visible_only


@needs_onnx
@pytest.mark.slow
def test_values_stay_in_their_ranges_and_use_them(exported):
    low, high = (np.array([value[end] for value in exported.about["input"]["values"]]) for end in ("low", "high"))
    seen = np.stack([observed(row_of(now, before)) for now, before in random_images(3, 2000)])
    assert (seen >= low).all() and (seen <= high).all()
    assert (seen.min(0)[low < 0] < 0).all(), "a value that is never negative should say so"


@needs_onnx
@pytest.mark.slow
def test_the_example_in_the_readme_is_ten_lines_and_runs(exported):
    (code,) = re.findall(r"```python\n(.*?)```", (exported.folder / "README.md").read_text(), re.DOTALL)
    assert len(code.splitlines()) == 10
    done = subprocess.run([sys.executable, "-c", code], cwd=exported.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    best = int(exported.run(np.zeros((1, 195), np.float32)).argmax())
    assert done.stdout.strip() == str(exported.about["output"]["actions"][best])


# --- The command ------------------------------------------------------------------------------------------------------


@needs_onnx
@pytest.mark.slow
def test_the_command_exports_a_checkpoint_and_prints_the_check(tmp_path, capfd):
    make_run(tmp_path)
    path = tmp_path / "early" / "checkpoints" / "best.safetensors"
    assert cli.main(["export", str(path), "--out", str(tmp_path / "new" / "folder"), "--json"]) == 0
    streams = capfd.readouterr()
    made = json.loads(streams.out.splitlines()[-1])
    assert all(not isinstance(value, dict | list) for value in made.values())
    assert made["model"] == str(tmp_path / "new" / "folder" / "model.onnx")
    assert f"Checked on {made['frames']:,} frames of real games" in streams.out
    assert "against torch" in streams.out and "as it plays" in streams.out and streams.err == ""
    about = json.loads((tmp_path / "new" / "folder" / "description.json").read_text())
    assert about["source"]["player"] == "best.safetensors" and about["scores"] == {}


@needs_onnx
@pytest.mark.slow
def test_a_model_that_differs_by_more_than_is_allowed_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    make_run(tmp_path)
    monkeypatch.setattr(
        "protege.games.tempest.agents.export.TOLERANCE", 1e-9
    )  # less than rounding: any model differs by more
    with pytest.raises(ExportError, match="nothing was written.*difference torch"):
        export("early", tmp_path / "out", tmp_path)
    assert list((tmp_path / "out").iterdir()) == []


@needs_onnx
def test_a_pupil_that_values_nothing_is_refused(tmp_path):
    make_run(tmp_path)
    path = tmp_path / "early" / "checkpoints" / "best.safetensors"
    saved = checkpoints.load(path)
    saved.tensors["network.value.bias"][:] = float("nan")
    checkpoints.save(path, saved.tensors, saved.state, kind=CHECKPOINT_KIND, task_version=TASK_VERSION)
    with pytest.raises(ExportError, match="no numbers"):
        export("early", tmp_path / "out", tmp_path)


def test_the_command_explains_itself(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["export", "--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert all(word in text for word in ("ONNX", "champion", "model.onnx", "--out", "--runs", "--json"))


@needs_onnx
@pytest.mark.parametrize("name", ["erly", "teacher", "nobody:Nothing"])
def test_what_is_no_pupil_is_refused_in_one_line(tmp_path, capsys, name):
    make_run(tmp_path)
    assert cli.main(["export", name, "--out", str(tmp_path / "out"), "--runs", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert f"no pupil named {name!r}" in error and error.count("\n") == 1
    assert name != "erly" or "did you mean early?" in error
    assert not (tmp_path / "out").exists()


@needs_onnx
def test_a_checkpoint_that_is_missing_or_of_another_kind_is_refused(tmp_path):
    with pytest.raises(ProtegeError, match="there is no checkpoint"):
        export(str(tmp_path / "none.safetensors"), tmp_path / "out")
    make_run(tmp_path, kind="echelon-ppo")
    with pytest.raises(ProtegeError, match="echelon-ppo"):
        export("early", tmp_path / "out", tmp_path)


@needs_onnx
@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_is_a_file_is_refused_before_any_work(tmp_path, place):
    make_run(tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ExportError, match="cannot be used as a folder"):
        export("early", tmp_path / place, tmp_path)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_without_its_packages_it_says_what_to_install(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)  # what Python does for a package that is not there
    with pytest.raises(ExportError, match=rf'{package}.*: pip install "protege\[export\]"'):
        export("early", tmp_path / "out", tmp_path)
