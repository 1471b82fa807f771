"""Progress and results of a run as text."""

from rich.table import Table

from examples.harness.run import Summary, Window


def format_window(window: Window) -> str:
    """Describe a window in one line."""
    verdict = "equal to the batch computation"
    if window.check.difference is not None:
        verdict = f"WRONG: {window.check.difference}"
    return (
        f"window {window.number}: {window.rows:,} rows, {window.check.results:,} results, {verdict}; {window.nodes} "
        f"nodes, imbalance {window.imbalance:.2f}, {window.entries:,} table entries"
    )


def to_table(name: str, summary: Summary) -> Table:
    """Return the summary of a run."""
    table = Table(title=name, title_justify="left")
    cells = {
        "rows": f"{summary.rows:,}",
        "rows/s": f"{summary.rows_per_second:,.0f}",
        "p50 ms": f"{summary.latency_quantile(0.5):,.0f}",
        "p99 ms": f"{summary.latency_quantile(0.99):,.0f}",
        "imbalance": f"{summary.mean_imbalance:.2f}",
        "table entries": f"{summary.windows[-1].entries:,}",
    }
    for column in cells:
        table.add_column(column, justify="right")
    table.add_row(*cells.values())
    return table


def format_verdict(summary: Summary) -> str:
    """Say whether all windows were right."""
    results = sum(window.check.results for window in summary.windows)
    if summary.is_right:
        return f"exact: the {results:,} results of {len(summary.windows)} windows equal those of a batch computation"
    wrong = [window for window in summary.windows if window.check.difference is not None]
    return f"WRONG: {len(wrong)} of {len(summary.windows)} windows differ, first {format_window(wrong[0])}"
