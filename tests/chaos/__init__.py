"""Faults against a running job whose outcome is known in closed form: `make chaos`, and a short version for every run."""
