"""What every training shares."""

import os
import sys
import threading

import pytest

from protege.training import LOW_PRIORITY, step_back


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux alone")
def test_a_thread_that_steps_back_does_so_alone():
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    found = []

    def work() -> None:
        step_back()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [max(before, LOW_PRIORITY)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
