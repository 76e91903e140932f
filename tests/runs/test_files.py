"""Files that survive kills: replaced whole or not at all; locks that end with their process."""

import os
import signal
import subprocess
import sys
import time

import pytest

from protege.runs.files import InUse, Lock, is_locked, remove_drafts, replacing
from tests.runs.processes import bury, started

HOLD = "import sys, time; from pathlib import Path; from protege.runs.files import Lock; "
HOLD += "lock = Lock(Path(sys.argv[1])); print('locked', flush=True); "


def holder(path, then="time.sleep(60)"):
    return started(HOLD + then, str(path), says="locked")


def test_a_file_is_replaced_once_it_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["file"]


def test_after_an_error_the_old_file_stays_and_no_draft(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as draft:
        draft.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["file"]


def test_drafts_of_the_dead_are_removed_and_nothing_else(tmp_path):
    for name in (".last.safetensors.12-34.tmp", "notes.tmp", "last.safetensors"):
        (tmp_path / name).write_text("")
    remove_drafts(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["last.safetensors", "notes.tmp"]


def test_one_process_holds_a_lock_and_is_named(tmp_path):
    path = tmp_path / "lock"
    assert not is_locked(path)
    process = holder(path)
    try:
        assert is_locked(path)
        with pytest.raises(InUse, match=f"process {process.pid} on .* since "):
            Lock(path)
    finally:
        bury(process)
    assert not is_locked(path)
    lock = Lock(path)
    assert lock.is_held() and is_locked(path)  # also seen by the process that has it
    lock.release()
    lock.release()
    assert not lock.is_held() and not is_locked(path)


def test_looking_at_a_lock_never_keeps_anybody_from_taking_it(tmp_path):
    path = tmp_path / "lock"
    Lock(path).release()
    look = "import sys; from pathlib import Path; from protege.runs.files import is_locked\n"
    look += "print('looking', flush=True)\nwhile True: is_locked(Path(sys.argv[1]))"
    watchers = [
        subprocess.Popen([sys.executable, "-c", look, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for watcher in watchers:
            assert watcher.stdout and watcher.stdout.readline() == "looking\n"
        for _ in range(20):
            Lock(path).release()
    finally:
        for watcher in watchers:
            bury(watcher)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_worker_does_not_keep_the_lock_of_its_killed_parent(tmp_path):
    path = tmp_path / "lock"
    fork = "import os; child = os.fork(); None if child else print(os.getpid(), flush=True); time.sleep(60)"
    process = holder(path, then=fork)
    child = int(process.stdout.readline())
    try:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        os.kill(child, 0)  # still there
        assert not is_locked(path)
    finally:
        os.kill(child, signal.SIGKILL)
        bury(process)


def test_a_lock_is_waited_for_a_moment(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.runs.files.LOCK_PATIENCE_S", 30.0)
    path = tmp_path / "lock"
    process = holder(path, then="time.sleep(0.3)")
    started = time.monotonic()
    Lock(path).release()
    assert time.monotonic() - started < 25
    bury(process)
