"""Learners, independent of any game."""
