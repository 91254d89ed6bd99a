"""Decoding: the tree, the mask, the acceptance rule, the limits, the record, and the loop that joins them."""
