"""Every decision of a job, without I/O: events in, commands out.

`Coordinator` decides for the driver, `UnitHost` for a node. Neither knows Spark, a network, threads or a store, so a
real cluster, a local one and a simulated one run the same code.
"""
