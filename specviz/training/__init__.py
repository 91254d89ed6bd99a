"""Training of drafters on the target's own answers: lookahead's slots, EAGLE-3 heads, ConFu's parts."""
