"""Mistakes that a user can make, as sentences."""

from __future__ import annotations


class SpecVizError(Exception):
    """A user's mistake; its message is one sentence fit for the page, the API and the terminal."""
