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
from mdp.approximate.training import Progress as Round
from mdp.errors import InvalidProjection
from mdp.exact import DEFAULT_ERROR
from mdp.exact import Progress as Sweep
from mdp.learning.saving import load
from mdp.process import DEFAULT_GAMMA, DEFAULT_TAU
from mdp.projecting import METHODS, Notice, Place
from mdp.spark.session import session
from migration import Workload
from storage import Secret

SECRET = "ELASTIC_SECRET"  # noqa: S105 - the name of the variable


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    if not os.environ.get(SECRET):
        raise InvalidProjection(f"tables are signed, and {SECRET} is not set. Set it to the secret of your jobs.")
    secret = Secret.of(os.environ[SECRET])
    spark = session("elastic project", given.master)
    try:
        table = mdp.project(
            Workload.from_json(Path(given.workload).read_text()),
            load(given.matrix),
            given.tau,
            given.gamma,
            method=given.method,
            error=given.error,
            relax=given.relax,
            spark=spark,
            place=Place(given.store, given.name, secret),
            resume=given.resume,
            report=_print,
        )
    finally:
        spark.stop()
    print(f"saved as {table.save(given.store, given.name, secret=secret)} in {given.store}: {dict(table.facts)}")


def _print(report: Notice | Sweep | Round) -> None:
    """A line for whatever is done: the log of a cluster is no terminal."""
    if isinstance(report, Notice):
        print(report.text, flush=True)
    elif isinstance(report, Round):
        print(f"round {report.round} of {report.rounds}, {report.seconds:.1f} s", flush=True)
    elif report.done == report.blocks:
        proven = "nothing proven yet" if report.error is None else f"error {report.error:.2%} before it"
        print(f"sweep {report.sweep} done, {report.seconds:.1f} s, {proven}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Projected migration costs as a value table, on Spark.")
    parser.add_argument("--matrix", required=True, help="where the transition matrix was saved")
    parser.add_argument("--workload", required=True, help="a file that Workload.to_json() wrote")
    parser.add_argument("--store", required=True, help="where the table goes, and checkpoints on the way to it")
    parser.add_argument("--name", required=True, help="the name of the table there")
    parser.add_argument("--tau", type=float, default=DEFAULT_TAU)
    parser.add_argument("--gamma", type=float, default=DEFAULT_GAMMA)
    parser.add_argument("--method", choices=METHODS, default="auto")
    parser.add_argument("--error", type=float, default=DEFAULT_ERROR, help="of all state: what values may be off by")
    parser.add_argument("--relax", action="store_true", help="smallest feasible caps where nothing is balanced")
    parser.add_argument("--resume", action="store_true", help="go on where the last one of this name was killed")
    parser.add_argument("--master", help="a Spark master; without it, what spark-submit was told")
    return parser


if __name__ == "__main__":
    main()
