"""Every strategy once more, in plain Python: what the tests compare the compiled loops with."""
