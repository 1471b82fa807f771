"""Deterministic events: of every 50 one is a person, three are auctions and 46 are bids, as in other Nexmark suites.

`make_events` returns all three together: `input` names the input, `person` is the person, the seller or the bidder,
`auction` the auction, and columns of other inputs are null. `COLUMNS` are those of each input. Persons come before
their auctions, auctions before their bids. Events are out of order by up to `DISORDER_MS`.
"""

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("input", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("person", pa.int64()),
        ("auction", pa.int64()),
        ("state", pa.string()),  # of a person
        ("category", pa.int64()),  # of an auction
        ("expires", pa.timestamp("us", "UTC")),  # of an auction: it takes no bids after this time
        ("price", pa.int64()),  # of a bid, in cents
    ]
)
COLUMNS = {
    "persons": ("ts", "person", "state"),
    "auctions": ("ts", "person", "auction", "category", "expires"),
    "bids": ("ts", "person", "auction", "price"),
}
START_MS = 1_700_000_000_000
DISORDER_MS = 1_000
AUCTION_MS = 10_000  # the longest time for which an auction is open
STATES = np.array(["OR", "ID", "CA", "WA", "NV", "AZ"])
CATEGORIES = 5
FIRST_CATEGORY = 10

_CYCLE = 50
_RECENT = 100  # persons and auctions that new events are about
_HOT = 0.5  # of the bids, on the newest auctions


def make_events(first: int, count: int, *, per_second: int = 1_000, seed: int = 7) -> pa.Table:
    """Return the events with these numbers; every event is a function of its number and the seed."""
    rng = np.random.default_rng([seed, first])
    numbers = np.arange(first, first + count)
    cycles, place = numbers // _CYCLE, numbers % _CYCLE
    is_person, is_auction = place == 0, (place >= 1) & (place <= 3)
    is_bid = ~is_person & ~is_auction
    persons, auctions = cycles + 1, cycles * 3 + np.clip(place, 0, 3)  # so many there have been
    chosen_person = persons - 1 - rng.integers(0, np.minimum(persons, _RECENT))
    spread = np.where(rng.random(count) < _HOT, 4, _RECENT)
    chosen_auction = auctions - 1 - rng.integers(0, np.minimum(auctions, spread).clip(1))
    times = START_MS + numbers * 1_000 // per_second - rng.integers(0, DISORDER_MS, count)
    inputs = np.select([is_person, is_auction], ["persons", "auctions"], "bids")
    states, categories = rng.integers(0, len(STATES), count), rng.integers(0, CATEGORIES, count)
    prices = rng.geometric(1e-4, count)
    # Microseconds that differ between auctions of the same millisecond, so that no two of a seller end at once.
    ends = (times + rng.integers(1, AUCTION_MS, count)) * 1_000 + auctions % 1_000
    return pa.Table.from_arrays(
        [
            pa.array(inputs),
            pa.array(times * 1_000).view(SCHEMA.field("ts").type),
            pa.array(np.where(is_person, persons - 1, chosen_person)),
            pa.array(np.where(is_auction, auctions - 1, chosen_auction), mask=is_person),
            pa.array(STATES[states], mask=~is_person),
            pa.array(FIRST_CATEGORY + categories, mask=~is_auction),
            pa.array(ends, mask=~is_auction).view(SCHEMA.field("expires").type),
            pa.array(prices, mask=~is_bid),
        ],
        schema=SCHEMA,
    )
