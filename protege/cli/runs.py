"""`protege runs`: list, show, compare, export, prune."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tyro.conf import Positional, UseAppendAction

from protege.cli.options import RunsOptions
from protege.cli.tables import count, date, number, print_json, print_table, size
from protege.games import Command
from protege.runs.files import replacing
from protege.runs.metrics import Metric, Point
from protege.runs.run import RunError, flat, list_runs, open_run, plan_prune, prune, runs_folder


@dataclass(frozen=True, kw_only=True)
class RunsList(RunsOptions):
    """List the runs: what they train, how far they are, how good they got, how much disk they use."""

    json: bool = False  # also print one flat JSON object for each run, and last one for all of them


def run_runs_list(command: RunsList) -> int:
    summaries = list_runs(command.runs)
    rows = [
        [s.name, s.status, f"{s.step:,}", number(s.best_score), size(s.disk_bytes), s.created[:16].replace("T", " ")]
        for s in summaries
    ]
    total = sum(summary.disk_bytes for summary in summaries)
    head = ("run", "status", "step", "best score", "disk", "created (UTC)")
    print_table(f"{count(rows, 'run')} in {runs_folder(command.runs)}, {size(total)}", head, rows, numbers=(2, 3, 4))
    running = sum(summary.status == "running" for summary in summaries)
    return print_json(command, *map(asdict, summaries), {"runs": len(rows), "running": running, "disk_bytes": total})


@dataclass(frozen=True, kw_only=True)
class RunsShow(RunsOptions):
    """Show one run: settings, newest figures, checkpoints and what happened."""

    name: Positional[str]  # the run


def run_runs_show(command: RunsShow) -> int:
    with open_run(command.name, command.runs) as run:
        info, summary, latest = run.info(), run.summary(), run.metrics.latest()
        declared, not_finite, events = run.metrics.declared(), run.metrics.not_finite(), run.metrics.events(most=12)
    commit = info.commit.hash[:12] + (" with changes" if info.commit.dirty else "") if info.commit else "unknown"
    settings = flat(info.config)
    about = _card(info.score, declared, latest) | {
        "status": f"{summary.status} at step {summary.step:,}, best score {number(summary.best_score) or 'none'}",
        "created": f"{info.created} with Protege {info.protege}, commit {commit}",
        "started": ", ".join(f"{start.kind} {start.time[:16]}" for start in info.starts),
        "machine": ", ".join(f"{key} {value}" for key, value in info.machine.items()),
        "disk": f"{size(summary.disk_bytes)} in {run.path}",
    }
    print_table(f"{run.name}: {info.game}, {info.learner}", (), [[key, value] for key, value in about.items()])
    print_table("settings", (), [[key, json.dumps(value)] for key, value in settings.items()])
    missed = {name: f" (not finite {times} times)" for name, times in not_finite.items()}
    figures = [
        [m.family, m.name, number(latest[m.name].value, "not finite"), m.unit, m.meaning + missed.get(m.name, "")]
        for m in declared
        if m.name in latest
    ]
    print_table("newest figures", ("family", "figure", "value", "unit", "meaning"), figures, numbers=(2,))
    files = [[path.name, size(path.stat().st_size), date(path.stat().st_mtime)] for path in run.all_checkpoints()]
    print_table("checkpoints", (), files, numbers=(1,))
    print_table("events", (), [[date(event.time), event.kind, event.text] for event in events])
    found = {**asdict(summary), "commit": info.commit and info.commit.hash, "checkpoints": len(files)}
    found |= {f"config.{key}": value for key, value in settings.items()}
    return print_json(command, found | {f"metric.{name}": point.value for name, point in latest.items()})


def _card(score: str | None, declared: Sequence[Metric], latest: Mapping[str, Point]) -> dict[str, str]:
    """How well it plays, with the interval and the baseline that its score was declared with."""
    metric = next((metric for metric in declared if metric.name == score), None)
    values = {name: point.value for name, point in latest.items()}
    if metric is None or values.get(metric.name) is None:
        return {}
    low, high = (values.get(name) for name in metric.interval or ("", ""))
    between = f" ({number(low)}–{number(high)})" if low is not None and high is not None else ""
    other = next((one for one in declared if one.name == metric.baseline), None)
    beside = f"; {other.label or other.name} {number(values[other.name])}" if other and other.name in values else ""
    return {"plays": f"{number(values[metric.name])} {metric.unit}{between}: {metric.meaning}{beside}"}


@dataclass(frozen=True, kw_only=True)
class RunsCompare(RunsOptions):
    """Put runs side by side: the settings that differ and the figures they share."""

    names: Positional[tuple[str, ...]]  # two runs or more


def run_runs_compare(command: RunsCompare) -> int:
    if len(set(command.names)) < 2:
        raise RunError("name at least two runs to compare")
    found: dict[str, dict[str, Any]] = {}
    for name in command.names:
        with open_run(name, command.runs) as run:
            figures = {f"metric.{name}": point.value for name, point in run.metrics.latest().items()}
            for metric in run.metrics.declared():
                if metric.better and f"metric.{metric.name}" in figures:
                    extremes = run.metrics.extremes(metric.name)
                    figures[f"metric.{metric.name}.best"] = extremes and extremes[metric.better == "higher"]
            settings = {f"config.{key}": value for key, value in flat(run.info().config).items()}
            found[name] = {**settings, **figures, "step": run.summary().step}
    every = list(dict.fromkeys(key for values in found.values() for key in values))
    differing = [k for k in every if k.startswith("config.") and len({repr(v.get(k)) for v in found.values()}) > 1]
    shared = [k for k in every if not k.startswith("config.") and all(k in values for values in found.values())]
    head, columns = ("", *found), tuple(range(1, len(found) + 1))
    rows = [[k.removeprefix("config."), *(json.dumps(v.get(k)) for v in found.values())] for k in differing]
    print_table("settings that differ", head, rows, numbers=columns)
    rows = [[k.removeprefix("metric."), *(number(v[k]) for v in found.values())] for k in sorted(shared)]
    print_table("figures that all have: newest, and best", head, rows, numbers=columns)
    told = {f"{name}.{key}": values.get(key) for name, values in found.items() for key in differing + shared}
    return print_json(command, told)


@dataclass(frozen=True, kw_only=True)
class RunsExport(RunsOptions):
    """Write figures of a run as CSV: one line for each time they were logged."""

    name: Positional[str]  # the run
    metric: UseAppendAction[tuple[str, ...]] = ()  # a figure to export, as often as needed; without it, all of them
    out: Path | None = None  # the file to write; without it, the terminal
    json: bool = False  # with --out: also print one flat JSON object on the last line


def run_runs_export(command: RunsExport) -> int:
    with open_run(command.name, command.runs) as run:
        if command.out is None:
            run.metrics.export_csv(sys.stdout, command.metric)
            return 0
        try:
            with replacing(command.out) as draft, draft.open("w", newline="", encoding="utf-8") as file:
                lines = run.metrics.export_csv(file, command.metric)
        except OSError as error:
            raise RunError(f"{command.out} cannot be written: {error.strerror}") from error
    print(f"{command.out}: {lines:,} lines")
    return print_json(command, {"run": command.name, "file": str(command.out), "lines": lines})


@dataclass(frozen=True, kw_only=True)
class RunsPrune(RunsOptions):
    """Free disk space: delete the recordings of old runs, or whole runs.

    Says what it would delete; only --yes deletes. A run that is being trained is left alone.
    """

    names: Positional[tuple[str, ...]] = ()  # runs to prune; without any, all but the newest
    keep: int = 5  # how many of the newest runs stay as they are, when no names are given
    whole: bool = False  # delete whole runs, not only their recordings
    yes: bool = False  # delete; without it nothing is deleted


def run_runs_prune(command: RunsPrune) -> int:
    removals = plan_prune(command.names, keep=command.keep, whole=command.whole, folder=command.runs)
    total = sum(removal.disk_bytes for removal in removals)
    what = "everything" if command.whole else "recordings"
    rows = [[r.run, "everything" if command.whole else count(r.paths, "file"), size(r.disk_bytes)] for r in removals]
    print_table(f"{what} of {count(rows, 'run')}, {size(total)}", (), rows, numbers=(2,))
    if command.yes:
        prune(removals, command.runs)
        print("deleted")
    else:
        print("Nothing was deleted. Add --yes to delete it." if removals else "There is nothing to delete.")
    return print_json(command, {"runs": len(rows), "disk_bytes": total, "deleted": command.yes})


RUNS: Final = {
    "list": Command(RunsList, run_runs_list),
    "show": Command(RunsShow, run_runs_show),
    "compare": Command(RunsCompare, run_runs_compare),
    "export": Command(RunsExport, run_runs_export),
    "prune": Command(RunsPrune, run_runs_prune),
}
