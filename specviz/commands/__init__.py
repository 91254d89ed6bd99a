"""The commands of `python -m specviz`, one module each: its arguments and what it does with them."""
