"""What a trace says beyond its metrics: pure functions from runs and steps to plain values, no model and no torch."""
