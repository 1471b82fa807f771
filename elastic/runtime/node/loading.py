"""Saved states of adopted units, loaded behind the working thread."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from elastic.runtime.patience import patiently
from elastic.runtime.protocol import Held
from storage.errors import StoreUnavailable, TransferFailed
from storage.state import StateManager, Unit

Loaded = Callable[[dict[int, Any]], None]


class Loader:
    """Loads in the background and hands the states to the working thread through `post`."""

    def __init__(
        self,
        manager: StateManager,
        patience_seconds: float,
        post: Callable[[Callable[[], None]], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._manager = manager
        self._patience = patience_seconds
        self._post = post
        self._on_failure = on_failure
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="load")

    def load(self, units: Sequence[Held], loaded: Loaded) -> None:
        """Hand over all states by slot, None where there is none; at once, so that a replay reads the log once."""
        self._executor.submit(self._load, units, loaded)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _load(self, units: Sequence[Held], loaded: Loaded) -> None:
        try:
            states = patiently(partial(self._states, units), self._patience)
        except Exception as error:  # noqa: BLE001 - handed to the working thread, which ends the node with it
            self._on_failure(error)
            return

        self._post(lambda: loaded({held.slot: held.state and states[held.state.unit] for held in units}))

    def _states(self, units: Sequence[Held]) -> dict[Unit, Any]:
        transfer = self._manager.load_many(held.state for held in units if held.state)
        try:
            return {unit: saved.state for unit, saved in transfer.result().items()}
        except TransferFailed as failed:
            reasons = list(failed.reasons.values())
            # Whatever is not the store's absence will not go away by waiting.
            raise next((r for r in reasons if not isinstance(r, StoreUnavailable)), reasons[0]) from failed
