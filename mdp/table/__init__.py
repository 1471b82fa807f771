"""Value tables: projected costs in a store, which the planner loads."""
