"""The routes. A handler parses, calls and renders."""
