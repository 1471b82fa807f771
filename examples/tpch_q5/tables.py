"""The data of TPC-H that query 5 reads, without keys: generated here, or read from the files of a generator."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elastic.errors import InvalidSetting

NATIONS = (
    *("ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA"),
    *("IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA"),
    *("SAUDI ARABIA", "VIETNAM", "RUSSIA", "UNITED KINGDOM", "UNITED STATES"),
)
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_REGION_OF_NATION = (0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1)
MOST_LINES = 7  # of an order
_LEAST_CENTS, _MOST_CENTS = 90_000, 10_500_000  # of a line
_MOST_DISCOUNT = 10  # per cent

Numbers = NDArray[np.int64]


def nations_of(region: str) -> list[str]:
    """Return the nations of a region, by the name that TPC-H gives it."""
    if region not in REGIONS:
        raise InvalidSetting("region", region, f"expected one of {', '.join(REGIONS)}")
    number = REGIONS.index(region)
    return [name for name, of in zip(NATIONS, _REGION_OF_NATION, strict=True) if of == number]


@dataclass(frozen=True, eq=False)
class Tables:
    """Nations of customers and suppliers, and the lines of orders one after the other.

    Order o has lines `starts[o]` to `starts[o + 1] - 1`. Whose order it is, and who supplies a line, is not here: these
    keys are drawn with skew.
    """

    customers: Numbers  # the nation of each
    suppliers: Numbers
    starts: Numbers
    cents: Numbers  # extended price of each line
    discounts: Numbers  # per cent

    @property
    def orders(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def generate(cls, customers: int = 1_500, suppliers: int = 100, orders: int = 15_000, seed: int = 0) -> Self:
        """Return tables of these sizes, by default those of scale factor 0.01; the same seed gives the same tables."""
        chance = np.random.default_rng([seed, 5])
        starts = np.append(0, np.cumsum(chance.integers(1, MOST_LINES + 1, orders)))
        return cls(
            chance.integers(0, len(NATIONS), customers),
            chance.integers(0, len(NATIONS), suppliers),
            starts,
            chance.integers(_LEAST_CENTS, _MOST_CENTS, starts[-1]),
            chance.integers(0, _MOST_DISCOUNT + 1, starts[-1]),
        )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `tpchgen-cli parquet` wrote: customer, supplier and lineitem."""

        def columns(table: str, *names: str) -> list[pa.ChunkedArray]:
            path = folder / f"{table}.parquet"
            try:
                return list(pq.read_table(path, columns=list(names)).itercolumns())
            except (OSError, pa.ArrowException, KeyError) as cause:
                raise InvalidSetting("data", str(folder), f"{path.name} cannot be read: {cause}") from cause

        [customers] = columns("customer", "c_nationkey")
        [suppliers] = columns("supplier", "s_nationkey")
        orders, prices, discounts = columns("lineitem", "l_orderkey", "l_extendedprice", "l_discount")
        keys = orders.to_numpy()
        starts = np.append(np.flatnonzero(np.diff(keys, prepend=-1)), len(keys))
        return cls(
            customers.to_numpy().astype(np.int64),
            suppliers.to_numpy().astype(np.int64),
            starts,
            _to_hundredths(prices),
            _to_hundredths(discounts),
        )


def _to_hundredths(decimals: pa.ChunkedArray) -> Numbers:
    """Return decimals with two places as integers."""
    hundredths: Numbers = np.rint(decimals.cast(pa.float64()).to_numpy() * 100).astype(np.int64)
    return hundredths
