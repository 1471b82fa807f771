"""All units of an operator and their states: checked once, shared by every manifest until a state changes."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self

from storage.errors import InvalidStorageInput
from storage.state.refs import BEFORE_FIRST_BATCH, StateRef
from storage.state.unit_id import UnitId

_NO_BATCHES: Mapping[UnitId, int] = MappingProxyType({})


class UnitStates(Mapping[UnitId, StateRef | None]):
    """The state of every unit; None while it is empty. Immutable.

    A unit without input keeps its object and is not saved again: `through` is the newest batch that its state is known
    to include, which may be later than the batch that it was saved after.

    Invariant: a state belongs to its unit, and includes at least the batch it was saved after. `oldest_batch` is the
    newest batch that all states include, `newest_batch` the newest that any includes; both are computed once, because a
    batch commit must not look at every unit.
    """

    def __init__(self, states: Mapping[UnitId, StateRef | None], through: Mapping[UnitId, int] = _NO_BATCHES) -> None:
        """`through` names only units that include more than the batch they were saved after."""
        self._states = dict(states)
        self._through = {unit: ref.batch if ref else BEFORE_FIRST_BATCH for unit, ref in self._states.items()}
        for unit, ref in self._states.items():
            if ref is not None and ref.unit != unit:
                raise InvalidStorageInput(f"{unit} cannot have the state of {ref.unit}. Name each unit's own state.")
        for unit, batch in through.items():
            if unit not in self._states:
                raise InvalidStorageInput(
                    f"there is no {unit}, so its state cannot be unchanged. Name units of the manifest."
                )
            self._through[unit] = max(self._through[unit], batch)
        self.oldest_batch = min(self._through.values(), default=BEFORE_FIRST_BATCH)
        self.newest_batch = max(self._through.values(), default=BEFORE_FIRST_BATCH)

    def with_states(self, refs: Iterable[StateRef], unchanged: Mapping[UnitId, int] = _NO_BATCHES) -> "UnitStates":
        """Return a copy with newer states for some units; the states of those in `unchanged` include that batch too.

        A batch in `unchanged` that is older than the known one changes nothing.
        """
        newer = {ref.unit: ref for ref in refs}
        through = {unit: batch for unit, batch in self._through.items() if unit not in newer}
        for unit, batch in unchanged.items():
            through[unit] = max(batch, through.get(unit, batch))
        return UnitStates({**self._states, **newer}, through)

    def with_units(self, units: Iterable[UnitId], through: int) -> "UnitStates":
        """Return a copy that has these units too; the state of one that is new is empty, and includes that batch."""
        new = [unit for unit in units if unit not in self._states]
        return UnitStates({**self._states, **dict.fromkeys(new)}, {**self._through, **dict.fromkeys(new, through)})

    def through(self, unit: UnitId) -> int:
        """Return the newest batch that the unit's state includes: its replay starts after it."""
        return self._through[unit]

    def to_json(self) -> list[Any]:
        """Return lists of unit, state and batch, not dicts: a manifest may hold thousands."""
        return [[unit.to_json(), ref and ref.to_json(), self._through[unit]] for unit, ref in self._states.items()]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        units = [UnitId.from_json(unit) for unit, _, _ in document]
        states = [ref and StateRef.from_json(ref) for _, ref, _ in document]
        through = [batch for _, _, batch in document]
        return cls(dict(zip(units, states, strict=True)), dict(zip(units, through, strict=True)))

    def __getitem__(self, unit: UnitId) -> StateRef | None:
        return self._states[unit]

    def __iter__(self) -> Iterator[UnitId]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, UnitStates):
            return (self._states, self._through) == (other._states, other._through)
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment] # as of every mapping

    def __repr__(self) -> str:
        return f"UnitStates({self._states!r}, {self._through!r})"
