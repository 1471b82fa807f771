"""What developers and the Makefile run; nothing here is part of the installed package."""
