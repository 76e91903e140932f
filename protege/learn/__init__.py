"""Learners, each told nothing of any game."""
