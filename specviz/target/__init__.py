"""The model that is decoded: loading, the pass over rows, the key/value cache, the load-time probe."""
