"""Other processes that hold what a test wants to have."""

import subprocess
import sys


def started(code: str, *arguments: str, says: str) -> "subprocess.Popen[str]":
    """A process that runs this code and has got as far as to say so."""
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == f"{says}\n"
    return process


def bury(process: "subprocess.Popen[str]") -> None:
    assert process.stdout
    process.kill()
    process.wait(timeout=30)
    process.stdout.close()
