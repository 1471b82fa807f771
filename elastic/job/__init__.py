"""A running job: the handle that its user holds, and what starts, watches and ends it."""
