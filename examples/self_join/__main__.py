"""Joins trades with those of the same stock in a sliding window, and compares every interval with a batch join.

python -m examples.self_join --local                  # in threads of this process
python -m examples.self_join --nodes 4 --scale 6@10   # on a local Spark, scaled after 10 s
"""

import click

from examples.harness.command import run_command
from examples.harness.options import StreamOptions, stream_options
from examples.self_join.application import TradeSelfJoin
from examples.workloads import Trades, make_symbols


@click.command()
@click.option("--symbols", default=1_000, show_default=True, type=click.IntRange(1), help="Different stocks.")
@click.option(
    "--window",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0.001),
    help="Seconds by which two joined trades may differ.",
)
@click.option(
    "--burst",
    default=0.2,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of trades that goes to two stocks, drawn again with every drift.",
)
@stream_options
def main(options: StreamOptions, symbols: int, window: float, burst: float) -> None:
    """Find purchases and sales of a stock by the same player, at similar prices and times."""
    trades = Trades(options.key_stream(make_symbols(symbols)), options.pace, burst)
    run_command(TradeSelfJoin(trades, round(window * 1_000), options.cost_microseconds), options)


if __name__ == "__main__":
    main()
