"""`python -m examples.demo` is `elastic demo`."""

from examples.demo.command import command

command()
