"""Value tables: projected costs in the store, as the planner loads them."""
