"""An operator whose output shows every lost and every repeated record: each record of a key gets the next number."""

import pyarrow as pa

from elastic.operators import Context, Operator, State
from elastic.operators.operator import Yields
from tests.spark.jobs import SlowCounts


class NumberRecords(Operator):
    """Emits `word` and its number 1, 2, 3, ...; states are slow to load, so that tests can kill in a migration."""

    output_schema = "word string, number long"

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def initial_state(self) -> SlowCounts:
        return SlowCounts({}, self._seconds)

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> Yields:
        words = rows[self.key[0]].to_pylist()
        numbers = []
        for word in words:
            state.value[word] += 1
            numbers.append(state.value[word])
        yield pa.table({"word": words, "number": pa.array(numbers, pa.int64())})


class NumberRecordsSlowly(NumberRecords):
    """The same with states that take a while to move."""

    def __init__(self) -> None:
        super().__init__(seconds=0.4)
