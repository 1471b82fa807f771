"""What the planner needs is loaded when a job starts, and not by the first plan, while a stream waits."""

import subprocess
import sys

PROGRAM = """
import sys
from elastic.spark.run import _load_planner
from migration import Assignment, ScatteredAssignment, Standbys, Workload, plan

_load_planner(has_standbys={has_standbys})
before = set(sys.modules)
current = Assignment.even(tasks=12, nodes=4)
owners = [owner.replace("node-2", "node-4") for owner in current.owners]  # node-2 was lost
for ownership in (current, ScatteredAssignment.from_owners(owners, current.nodes)):
    for nodes in (3, 4, 6):
        standbys = dict(standbys=Standbys.place(ownership, 1)) if {has_standbys} else dict()
        plan(ownership, nodes, Workload.uniform(12), **standbys)
print(sorted(set(sys.modules) - before))
"""


def test_no_plan_of_a_running_job_is_the_first_to_import_something() -> None:
    for has_standbys in (False, True):
        program = PROGRAM.format(has_standbys=has_standbys)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
        assert done.stdout.strip() == "[]", has_standbys
