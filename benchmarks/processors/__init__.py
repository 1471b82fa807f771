"""The same stateful processor on Spark's own engine and on this one."""
