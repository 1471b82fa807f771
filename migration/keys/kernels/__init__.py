"""The inner loops of key planning, compiled where numba is installed."""
