"""The commands of the `elastic` command line, one file each."""
