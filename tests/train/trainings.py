"""What tests of trainings share: observers that remember or fail, and what makes two checkpoints the same."""

import numpy as np
import torch

from protege.train.loop import Observer


class Notes(Observer):
    """An observer that remembers."""

    def __init__(self):
        self.reports, self.exams, self.notes, self.figures = [], [], [], []

    def started(self, report, done):
        self.reports.append(report)

    def progressed(self, step, done, figures):
        self.figures.append(figures)

    def examined(self, exam, teacher, best):
        self.exams.append(exam)

    def switched(self, switches):
        self.switches = switches

    def noted(self, text):
        self.notes.append(text)

    def reported(self, report):
        self.notes.append(report.text())


class Crash(Notes):
    """Ends the training at the first exam, as a power cut would."""

    def examined(self, exam, teacher, best):
        raise RuntimeError("power cut")


def assert_same(one, other):
    """Two checkpoints hold exactly the same, clocks aside."""
    assert one.tensors.keys() == other.tensors.keys()
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, other.tensors[name]), name
    clocks = {"elapsed_s": 0, "cpu_s": 0}
    _assert_equal(one.state | clocks, other.state | clocks, "state")


def _assert_equal(one, other, where):
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            _assert_equal(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            _assert_equal(left, right, f"{where}.{number}")
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other), where
    elif isinstance(one, np.ndarray):
        assert np.array_equal(one, other), where
    else:
        assert one == other, where
