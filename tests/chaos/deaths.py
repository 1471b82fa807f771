"""Deaths at chosen moments of the protocol: a node kills its own process, or a sender kills a node.

Nothing in the engine knows of this. Each planned death happens once, which a file remembers: the batch comes again.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from elastic.operators import KeyedColumns

UNSTAGED = "before staging"  # a sender is about to send
STAGED = "staged"  # one source partition is sent, another one is not
COMMITTED = "committed"  # the batch is committed, and no unit of this node has taken it
APPLYING = "applying"  # some units of this node have taken it
REPLAYING = "replaying"  # the same unit takes the same batch again, in the next life of its node
REPORTING = "reporting"  # its units have taken it, and say so
CAPTURING = "capturing"  # a state that includes the batch is being captured for a snapshot
HANGING = "hanging"  # not a death: a unit of this node takes the batch, and never ends its step
MOMENTS = (UNSTAGED, STAGED, COMMITTED, APPLYING, REPLAYING, REPORTING, CAPTURING)

PIDS = "pids.json"  # the processes of the nodes, for senders; written by the driver
_STAGING_SECONDS = 0.7  # in which another source partition is sent
_REPORTING_SECONDS = 0.02


@dataclass(frozen=True)
class Deaths:
    """Planned deaths: the moment of each, by batch. `folder` is one that all processes share."""

    folder: str
    planned: tuple[tuple[str, int], ...] = ()

    def is_planned(self, *moments: str) -> bool:
        return any(moment in moments for moment, _ in self.planned)

    def happened(self) -> list[str]:
        """The moments at which a process has died."""
        return [moment for moment, batch in self.planned if self._mark(moment, batch).exists()]

    def at(self, moment: str, batch: int, task: int) -> None:
        """Die, if that was planned and has not happened."""
        if (moment, batch) in self.planned and self._is_its_turn(moment, batch, task):
            if moment == REPORTING:
                threading.Timer(_REPORTING_SECONDS, _die).start()
            else:
                _die()

    def hang_at(self, batch: int, task: int) -> None:
        """Never return, if that was planned and has not happened."""
        if (HANGING, batch) in self.planned and self._is_its_turn(HANGING, batch, task):
            while True:
                time.sleep(1.0)

    def at_capture(self, batch: int, task: int) -> None:
        """Die, if that was planned for this batch or an earlier one: there is no capture after every batch."""
        for moment, planned in self.planned:
            if moment == CAPTURING and planned <= batch:
                self.at(moment, planned, task)

    def around_sending(self, rows_per_batch: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass the rows of a source partition on, and kill a node before or between, if that was planned."""
        for rows in batches:
            if rows.num_rows:
                first = rows.column("value")[0].as_py()
                self._kill_a_node(first // rows_per_batch, is_first=first % rows_per_batch == 0)
            yield rows

    def _kill_a_node(self, batch: int, *, is_first: bool) -> None:
        moment = UNSTAGED if is_first else STAGED
        if (moment, batch) in self.planned and self._is_its_turn(moment, batch, 0):
            time.sleep(0 if is_first else _STAGING_SECONDS)
            with suppress(ProcessLookupError):  # it has died by itself since
                os.kill(min(json.loads(Path(self.folder, PIDS).read_text())), signal.SIGKILL)

    def _is_its_turn(self, moment: str, batch: int, task: int) -> bool:
        """Return whether no process was here before; for a replay, whether this task has died in this batch."""
        if moment == REPLAYING:
            died = self._mark(APPLYING, batch)
            if not died.exists() or died.read_text() != str(task):
                return False
        try:
            with self._mark(moment, batch).open("x") as mark:
                mark.write(str(task))
        except FileExistsError:
            return False
        return True

    def _mark(self, moment: str, batch: int) -> Path:
        return Path(self.folder, f"died {moment} {batch}")


class MortalColumns(KeyedColumns):
    """Keyed columns whose capture may be fatal."""

    dies: tuple[Deaths, int, int] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self.dies is not None:
            deaths, batch, task = self.dies
            deaths.at_capture(batch, task)
        return super().__reduce__()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
