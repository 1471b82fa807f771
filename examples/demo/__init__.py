"""The demo: frequent patterns on a local Spark that scales 4 -> 6 -> 3, loses a node, and verifies every count."""
