"""What importing the pure packages drags in."""

import subprocess
import sys


def test_planning_drags_in_nothing_heavy() -> None:
    program = (
        "import sys; from migration import *; plan(Assignment.even(8, 2), 3, Workload.uniform(8), 0.5); "
        "heavy = ('pyspark', 'pyarrow', 'boto3', 'matplotlib', 'networkx', 'scipy.sparse'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
