"""All units of an operator and the states they have: checked once, shared by every manifest until a state changes."""

from collections.abc import Iterable, Iterator, Mapping

from storage.errors import InvalidStorageInput
from storage.state.refs import BEFORE_FIRST_BATCH, StateRef
from storage.state.unit import Unit


class Units(Mapping[Unit, StateRef | None]):
    """Which state every unit has; None while it is empty. Immutable.

    Invariant: a state belongs to the unit that has it. `oldest_batch` is the newest batch that all states include,
    `newest_batch` the newest that any includes; both are computed once, for a batch commit must not look at every unit.
    """

    def __init__(self, states: Mapping[Unit, StateRef | None]) -> None:
        self._states = dict(states)
        for unit, ref in self._states.items():
            if ref is not None and ref.unit != unit:
                raise InvalidStorageInput(f"{unit} cannot have the state of {ref.unit}. Name each unit's own.")
        batches = [ref.batch if ref else BEFORE_FIRST_BATCH for ref in self._states.values()]
        self.oldest_batch = min(batches, default=BEFORE_FIRST_BATCH)
        self.newest_batch = max(batches, default=BEFORE_FIRST_BATCH)

    def with_states(self, refs: Iterable[StateRef]) -> "Units":
        return Units({**self._states, **{ref.unit: ref for ref in refs}})

    def __getitem__(self, unit: Unit) -> StateRef | None:
        return self._states[unit]

    def __iter__(self) -> Iterator[Unit]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def __repr__(self) -> str:
        return f"Units({self._states!r})"
