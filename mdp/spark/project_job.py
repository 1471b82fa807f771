"""Project with `spark-submit`, on any master:

spark-submit mdp/spark/project_job.py --matrix s3://models/tweets.json --workload workload.json \
    --store s3://models --name tweets [--resume]

The table and its checkpoints are signed with ELASTIC_SECRET, which planners need too.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import mdp
from mdp.errors import InvalidProjection
from mdp.exact import DEFAULT_ERROR
from mdp.learning.matrix_files import load_matrix
from mdp.process import DEFAULT_GAMMA, DEFAULT_TAU
from mdp.progress import Notice, SweepProgress, TrainingProgress
from mdp.projection import METHODS, CheckpointLocation
from mdp.spark.session import get_session
from migration import Workload
from storage import Secret

SECRET = "ELASTIC_SECRET"  # noqa: S105 - the name of the variable


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    if not os.environ.get(SECRET):
        raise InvalidProjection(f"tables are signed, and {SECRET} is not set. Set it to the secret of your jobs.")
    secret = Secret.of(os.environ[SECRET])
    spark = get_session("elastic project", given.master)
    try:
        table = mdp.project(
            Workload.from_json(Path(given.workload).read_text()),
            load_matrix(given.matrix),
            given.tau,
            given.gamma,
            method=given.method,
            error=given.error,
            relax=given.relax,
            spark=spark,
            checkpoint=CheckpointLocation(given.store, given.name, secret),
            resume=given.resume,
            report=_print,
        )
    finally:
        spark.stop()
    print(f"saved as {table.save(given.store, given.name, secret=secret)} in {given.store}: {dict(table.facts)}")


def _print(report: Notice | SweepProgress | TrainingProgress) -> None:
    """Print a line per completed step, because the log of a cluster is no terminal."""
    if isinstance(report, Notice):
        print(report.text, flush=True)
    elif isinstance(report, TrainingProgress):
        print(f"round {report.round} of {report.rounds}, {report.seconds:.1f} s", flush=True)
    elif report.done == report.blocks:
        proven = "nothing proven yet" if report.error is None else f"error {report.error:.2%} before it"
        print(f"sweep {report.sweep} done, {report.seconds:.1f} s, {proven}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Projected migration costs as a value table, on Spark.")
    parser.add_argument("--matrix", required=True, help="location of the transition matrix")
    parser.add_argument("--workload", required=True, help="a file that Workload.to_json() wrote")
    parser.add_argument("--store", required=True, help="store URL of the table and its checkpoints")
    parser.add_argument("--name", required=True, help="name of the table in the store")
    parser.add_argument("--tau", type=float, default=DEFAULT_TAU)
    parser.add_argument("--gamma", type=float, default=DEFAULT_GAMMA)
    parser.add_argument("--method", choices=METHODS, default="auto")
    parser.add_argument(
        "--error",
        type=float,
        default=DEFAULT_ERROR,
        help="error bound, as a fraction of total state",
    )
    parser.add_argument("--relax", action="store_true", help="smallest feasible caps where nothing is balanced")
    parser.add_argument("--resume", action="store_true", help="resume the projection of this name that was killed")
    parser.add_argument("--master", help="Spark master; default: that of spark-submit")
    return parser


if __name__ == "__main__":
    main()
