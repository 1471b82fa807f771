"""Development scripts, which are not part of the installed package."""
