"""Measurements: each module prints the figures that the README shows, and says on what."""
