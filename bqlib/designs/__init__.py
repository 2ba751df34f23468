"""Design rules: ordered point sequences for a (kernel, target) pair."""
