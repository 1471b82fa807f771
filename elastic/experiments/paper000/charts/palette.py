"""Colours and names of strategies, and the lower bound."""

COLOURS = {
    "min-table": "#c9962f",
    "min-mig": "#7d5ba6",
    "mixed": "#2f74b5",
    "mixed-bf": "#5aa9a3",
    "readj": "#98a3ad",
    "knap": "#b5343c",
    "tasks": "#7d5ba6",
    "hash": "#1c2733",
    "ideal": "#4c9a5b",
}
NAMES = {
    "min-table": "MinTable",
    "min-mig": "MinMig",
    "mixed": "Mixed",
    "mixed-bf": "Mixed, brute force",
    "readj": "Readj, best sigma",
    "knap": "knap (ours)",
    "tasks": "task moves",
    "hash": "hash alone",
    "ideal": "Ideal, uniform keys",
}
BOUND = "#1c2733"
SERIES = ("#98a3ad", "#c9962f", "#2f74b5", "#b5343c", "#7d5ba6")  # for series that are no strategies
