"""How benchmarks measure trainings."""

from protege.slices import training_rate
from tests.games import tiny


def test_a_training_that_ends_before_its_first_report_has_a_rate_all_the_same():
    rate, figures = training_rate(tiny.TRAINER, tiny.Config(pulls=1))
    assert rate == 0.0 and figures == {}
