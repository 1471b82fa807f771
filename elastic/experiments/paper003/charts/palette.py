"""Colours and names of policies."""

COLOURS = {
    "even": "#98a3ad",
    "consistent-hash": "#c9962f",
    "ssm": "#2f74b5",
    "mtm-aware": "#b5343c",
    "one step": "#e39a7b",
    "two steps": "#c9503f",
    "approximate": "#c9503f",
    "exact": "#7c1d3a",
}
NAMES = {
    "even": "even split",
    "consistent-hash": "consistent hashing",
    "ssm": "single step (SSM)",
    "mtm-aware": "MTM-aware",
    "one step": "one step of foresight",
    "two steps": "two steps of foresight",
    "approximate": "approximate",
    "exact": "exact values",
}
