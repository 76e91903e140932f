"""Protege trains game agents that outplay their teachers."""

__version__ = "0.1.0"


class ProtegeError(Exception):
    """A problem the user can act on; the command line prints it as one line."""
