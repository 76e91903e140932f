"""Metrics are named where they are declared and logged: nothing that shows them knows one by its name."""

import re
from pathlib import Path

from protege.games.echelon.agents import contest as echelon_contest
from protege.games.echelon.training import metrics as echelon
from protege.games.own.training import metrics as own
from protege.games.tempest.agents import contest as tempest_contest
from protege.games.tempest.training import metrics as tempest
from protege.runs.metrics import Metric

PACKAGE = Path(__file__).parents[1] / "protege"
TABLES: dict[str, tuple[Metric, ...]] = {
    "tempest pqn": tempest.METRICS["pqn"],
    "tempest rainbow": tempest.METRICS["rainbow"],
    "echelon": echelon.METRICS,
    **{f"own {learner}": metrics for learner, metrics in own.METRICS.items()},
    "tempest style": tempest_contest.STYLE,
    "echelon style": echelon_contest.STYLE,
}
OTHERS = {"progress", "level"}  # names of metrics that are an HTML element or a unit as well


def mentions(text: str, names: set[str]) -> set[str]:
    """Names that occur as a string or as a property; those with an underscore mean nothing else, so anywhere."""
    quoted = set(re.findall(r"""(?<=["'`])[a-z0-9_]+(?=["'`])""", text))
    words = {word for word in re.findall(r"\w+", text) if "_" in word}
    return (quoted | words) & names


def test_terminal_and_page_name_no_metric():
    names = {metric.name for metrics in TABLES.values() for metric in metrics}
    files = [PACKAGE / "cli" / "console.py", *sorted((PACKAGE / "dashboard" / "static").glob("*.js"))]
    assert len(files) > 10
    found = {path.name: mentions(path.read_text(encoding="utf-8"), names - OTHERS) for path in files}
    assert not {name: sorted(named) for name, named in found.items() if named}


def test_mentions_are_found():
    names = {"kl", "eval_score"}
    assert mentions('run.last("kl")', names) == {"kl"} and mentions("figures.eval_score", names) == {"eval_score"}
    assert mentions("const kl = klein(`kl ${x}`)", names) == set()


def test_what_metrics_name_is_declared_beside_them():
    for table, metrics in TABLES.items():
        names = [metric.name for metric in metrics]
        assert len(names) == len(set(names)), table
        for metric in metrics:
            assert {*(metric.interval or ()), metric.baseline} - {""} <= set(names), metric.name


def test_the_legend_of_a_chart_and_the_row_of_cards_tell_metrics_apart():
    for table, metrics in TABLES.items():
        ends = {end for metric in metrics for end in metric.interval or ()}
        labels = [(metric.family, metric.label or metric.name) for metric in metrics if metric.name not in ends]
        assert len(labels) == len(set(labels)), table
        cards = {metric.card for metric in metrics if metric.card is not None}
        assert len({card.title for card in cards}) == len(cards), table
        places = [(card.format == "gauge", card.place) for card in cards]
        assert len(places) == len(set(places)), table
