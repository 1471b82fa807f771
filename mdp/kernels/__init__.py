"""The inner loops of the decision process, in the subset of Python that the compiler and the interpreter both run.

Compiled where numba is installed; plain Python where it is not, some hundred times slower, with the same results.
"""
