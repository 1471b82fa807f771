"""`python -m examples.demo` is `elastic demo`."""

from examples.demo.command import command

if __name__ == "__main__":
    command()
