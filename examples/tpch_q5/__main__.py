"""Answers TPC-H query 5 over a sliding window of generated purchases, and compares every window with a batch query.

python -m examples.tpch_q5 --local                         # in threads of this process
python -m examples.tpch_q5 --nodes 4 --scale 6@10          # on a local Spark, scaled after 10 s
tpchgen-cli parquet -s 0.1 -o tpch -T customer,supplier,lineitem && python -m examples.tpch_q5 --local --data tpch
"""

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from examples.harness.command import run_command
from examples.harness.options import StreamOptions, stream_options
from examples.tpch_q5.application import RevenueByNation
from examples.tpch_q5.stream import Purchases
from examples.tpch_q5.tables import REGIONS, Tables


@click.command()
@click.option("--customers", default=1_500, show_default=True, type=click.IntRange(1), help="Generated customers.")
@click.option("--suppliers", default=1_000, show_default=True, type=click.IntRange(1), help="Generated suppliers.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with customer, supplier and lineitem as Parquet files of tpchgen-cli; generated if not given.",
)
@click.option("--window", default=3, show_default=True, type=click.IntRange(1), help="Intervals of the sliding window.")
@click.option("--region", default="ASIA", show_default=True, type=click.Choice(REGIONS), help="Region of the nations.")
@stream_options
def main(options: StreamOptions, customers: int, suppliers: int, data: Path | None, window: int, region: str) -> None:
    """Sum what customers buy from suppliers of their own nation, by nation, over a window that slides by intervals."""
    tables = Tables.generate(customers, suppliers, seed=options.seed) if data is None else Tables.read(data)
    run_command(make_application(tables, options, window, region), options)


def make_application(tables: Tables, options: StreamOptions, window: int = 3, region: str = "ASIA") -> RevenueByNation:
    """Return the application for the options of the command line; customers and suppliers drift each on their own."""
    customers = options.key_stream(_numbers(len(tables.customers)))
    other = replace(options, seed=options.seed + 1)
    suppliers = other.key_stream(_numbers(len(tables.suppliers)))
    purchases = Purchases(tables, customers, suppliers, options.pace)
    return RevenueByNation(purchases, window, region, options.cost_microseconds)


def _numbers(count: int) -> pa.Array:
    return pa.array(np.arange(count))


if __name__ == "__main__":
    main()
