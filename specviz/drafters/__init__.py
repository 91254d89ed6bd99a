"""Drafters: what proposes tokens. `base` is the seam, the other modules are the methods."""
