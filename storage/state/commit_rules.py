"""Rules of commits: batches and rounds follow each other, and no number decreases."""

from collections.abc import Callable, Iterable

from storage.errors import InvalidStorageInput, LeaseClosed
from storage.state.batch_time import BatchTime
from storage.state.manifest import Manifest
from storage.state.refs import LogRef


def check_change(operator: str, current: Manifest, changed: Manifest, holds: Callable[[str], bool]) -> None:
    """Refuse a change that goes back, or that names a new state whose lease the driver no longer `holds`."""
    for name in ("epoch", "last_batch", "low_water_mark", "published"):
        before, after = getattr(current, name), getattr(changed, name)
        if after < before:
            raise InvalidStorageInput(
                f"{name} of {operator!r} would go back from {before} to {after}. "
                "Change the manifest that commit passes, and save a state for every new unit."
            )
    for unit, ref in changed.units.items():
        if unit in current.units and changed.units.through(unit) < current.units.through(unit):
            raise InvalidStorageInput(
                f"the state of {unit} would go back from batch {current.units.through(unit)} to batch "
                f"{changed.units.through(unit)}. Commit newer states only."
            )
        if ref is not None and ref != current.units.get(unit) and not holds(ref.lease):
            raise LeaseClosed(ref.lease)


def check_round(batch: int, round_: int, logs: Iterable[LogRef], time: BatchTime | None) -> None:
    """Refuse logs and times of another batch or round."""
    if any((ref.batch, ref.round) != (batch, round_) for ref in logs):
        raise InvalidStorageInput(f"not all logs are of batch {batch}, round {round_}. Commit each with its own.")
    if time is not None and (time.batch, 0) != (batch, round_):
        raise InvalidStorageInput(
            f"the time of batch {time.batch} cannot come with round {round_} of batch {batch}. "
            "Give each batch its own, with round 0."
        )


def check_time(operator: str, current: Manifest, time: BatchTime | None) -> None:
    """Refuse a clock or watermark that is behind that of the batch before, in this run or the last."""
    latest = current.latest_time
    if time is None or latest is None:
        return
    for name, before, now in (
        ("timestamp", latest.timestamp_ms, time.timestamp_ms),
        ("watermark", latest.next_watermark_ms, time.watermark_ms),
        ("watermark", latest.next_watermark_ms, time.next_watermark_ms),
    ):
        if before is not None and (now is None or now < before):
            raise InvalidStorageInput(
                f"the {name} of batch {time.batch} of {operator!r} would go back from {before} to {now}. "
                "Start from the time of the batch before."
            )


def is_committed(current: Manifest, batch: int, round_: int) -> bool:
    """Whether this round of the batch is committed, so that committing it again changes nothing."""
    if batch <= current.last_batch:
        return True
    open_round = current.open_round
    return open_round is not None and open_round.batch == batch and round_ <= open_round.round


def check_order(current: Manifest, batch: int, round_: int) -> None:
    """Refuse a round out of order: a new batch starts with round 0, after the one before is complete."""
    open_round = current.open_round
    expected = (open_round.batch, open_round.round + 1) if open_round else (batch, 0)
    if (batch, round_) != expected:
        raise InvalidStorageInput(
            f"round {round_} of batch {batch} cannot follow: round {expected[1]} of batch {expected[0]} is next. "
            "Commit the rounds in order, and complete a batch before the next one."
        )
