"""Examples to start from."""
