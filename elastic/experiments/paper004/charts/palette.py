"""Colours and names of policies and schedulers."""

COLOURS = {
    "round-robin": "#98a3ad",
    "text": "#c9962f",
    "rec": "#7d5ba6",
    "best-1024": "#5aa9a3",
    "best": "#b5343c",
    "full-knowledge": "#1c2733",
    "posg": "#2f74b5",
    "posg-batch": "#b5343c",
}
NAMES = {
    "round-robin": "round-robin",
    "text": "POSG as written",
    "rec": "POSG, wall clock",
    "best-1024": "POSG, best with N = 1,024",
    "best": "POSG, best",
    "full-knowledge": "full knowledge",
    "posg": "posg",
    "posg-batch": "posg-batch",
}
