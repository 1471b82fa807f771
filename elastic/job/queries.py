"""Queries of the state of a job by key."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from elastic import threads
from elastic.core.unit_host import Answer, LookupFailure
from elastic.core.view import JobView
from elastic.deadlines import Deadline
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.errors import InvalidRequest, QueryFailed, StateUnavailable
from elastic.operators.partial import HeldPartials
from elastic.routing import TableGrouping, hash_key
from elastic.wire import PeerUnavailable, Refused
from elastic.wire.signing import seal, unseal
from storage.state import UnitId

_PAUSE_SECONDS = 0.02  # between two attempts, while units move or are being restored

Result = TypeVar("Result")


class StateQueries:
    """Asks the nodes that have the state. Any thread may call it."""

    def __init__(self, context: JobContext, driver: Driver) -> None:
        self._context = context
        self._driver = driver

    def look_up(self, key: Any, stage: int, *, stale: bool = False) -> Any:
        """Return what the operator of a stage answers for a key; waits while its unit moves or is being restored.

        An answer that may be `stale` comes from a standby if the owner does not answer. Raises `StateUnavailable` after
        `query_seconds`.
        """
        if self._context.pipeline.stages[stage].is_partial:
            pipeline = self._context.pipeline
            name, following = (pipeline.stages[one].name for one in (stage, *pipeline.followers(stage)))
            raise InvalidRequest(
                f"a key of the partial stage {name!r} is in several tasks. Ask stage {following!r}, with fresh=True "
                "for what the partial stage holds too."
            )
        return self._retry(lambda: self._look_up(key, stage, stale=stale))

    def _look_up(self, key: Any, stage: int, *, stale: bool) -> Any:
        asked = self._driver.view
        columns, unit = self._locate(key, stage, asked)
        try:
            answer = self._ask(unit, columns, None)
            self._check_age(answer, unit, asked)
        except StateUnavailable:
            nodes = [node for node, units in self._driver.view.standbys.items() if stale and unit in units]
            for node in nodes:
                with suppress(StateUnavailable):
                    answer = self._ask(unit, columns, None, standby=node)
                    self._check_keys(answer, unit, asked)
                    return answer.value
            raise
        return answer.value

    def look_up_fresh(self, key: Any, stage: int) -> Any:
        """Return what the operator would answer after the partials that tasks of the stage before hold now.

        The answer includes every row of all batches that the operator's unit has completed, and each row once.
        """
        before = self._context.pipeline.partial_stage_before(stage)
        if before is None:
            name = self._context.pipeline.stages[stage].name
            raise InvalidRequest(f"there is no partial stage before stage {name!r}. Ask without fresh.")
        return self._retry(lambda: self._look_up_fresh(key, stage, before))

    def _look_up_fresh(self, key: Any, stage: int, before: int) -> Any:
        asked = self._driver.view
        columns, unit = self._locate(key, stage, asked)
        held = self._find_partials(columns, before)
        tables = [answer.value.partials for answer in held if answer.value.partials.num_rows]
        found = self._ask(unit, columns, pa.concat_tables(tables) if tables else None)
        for answer in held:
            # Partials that a task emitted later are missing in both, those that arrived since are in both.
            if not answer.value.flushed <= found.batch <= answer.batch:
                raise StateUnavailable(unit.task, None)
        self._check_age(found, unit, asked)
        return found.value

    def _check_age(self, answer: Answer, unit: UnitId, asked: JobView) -> None:
        """Raise `StateUnavailable` for a unit that is being restored and has not repeated what was published."""
        self._check_keys(answer, unit, asked)
        if answer.batch < asked.published_batch:
            raise StateUnavailable(unit.task, None)

    def _check_keys(self, answer: Answer, unit: UnitId, asked: JobView) -> None:
        """Raise `StateUnavailable` if keys of the stage moved while it was asked, or the unit may not have them yet.

        Keys move in the last two rounds of a batch, and the driver publishes the new groupings before a node gets the
        first one. Between the two rounds no unit has them.
        """
        if not isinstance(asked.routing.groupings[unit.stage], TableGrouping):
            return
        if answer.batch < asked.regrouped_batch or self._driver.view.regrouped_batch != asked.regrouped_batch:
            raise StateUnavailable(unit.task, None)

    def _find_partials(self, key: tuple[Any, ...], stage: int) -> list[Answer]:
        """Return what every task of a partial stage holds of a key."""
        routing = self._driver.view.route
        document = {"stage": stage, "key": seal(key, self._context.secret)}
        found: dict[int, Answer] = {}
        for node in dict.fromkeys(routing.assignment.owners):
            for number, batch, value in self._call(node, "partials", document, UnitId(stage, 0)):
                assert isinstance(value, HeldPartials)  # noqa: S101 - for the type checker
                found[number] = Answer(number, batch, value)
        missing = [unit for unit in routing.units(stage) if unit.number not in found]
        if missing:
            raise StateUnavailable(missing[0].task, None)
        return list(found.values())

    def _ask(
        self, unit: UnitId, key: tuple[Any, ...], partials: pa.Table | None, *, standby: str | None = None
    ) -> Answer:
        node = standby or self._driver.view.route.owners(unit)[0]
        sealed = seal((key, partials), self._context.secret)
        document = {"unit": unit.number, "key": sealed, "stale": standby is not None}
        return Answer(*self._call(node, "lookup", document, unit))

    def _call(self, node: str, action: str, document: dict[str, Any], unit: UnitId) -> Any:
        try:
            answer = unseal(self._driver.links.call(node, action, document), self._context.secret)
        except (KeyError, Refused, PeerUnavailable) as cause:
            raise StateUnavailable(unit.task, node) from cause
        if isinstance(answer, LookupFailure):
            raise QueryFailed(self._context.pipeline.stages[unit.stage].name, answer.error)
        return answer

    def _locate(self, key: Any, stage: int, asked: JobView) -> tuple[tuple[Any, ...], UnitId]:
        """Return a key as one value per column, and its unit; `InvalidKey` for a key of another type."""
        keyed = self._context.pipeline.stages[stage]
        columns = key if isinstance(key, tuple) else (key,)
        hashed = hash_key(*columns, types=[keyed.input_schema.field(name).type for name in keyed.key])
        return columns, asked.routing.groupings.unit_of(hashed, stage)

    def _retry(self, ask: Callable[[], Result]) -> Result:
        """Return an answer within `query_seconds`; if none comes because the job has ended, raise what ended it."""
        deadline = Deadline(self._context.settings.query_seconds)
        while True:
            try:
                return ask()
            except StateUnavailable:
                self._driver.views.check()
                if not deadline.left():
                    raise
                threads.sleep(_PAUSE_SECONDS)
