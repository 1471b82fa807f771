"""Faults against running jobs whose outcome is known in closed form: `make chaos`, and a short version as tests."""
