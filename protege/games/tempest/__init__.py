"""Tempest, the arcade game of 1981."""
