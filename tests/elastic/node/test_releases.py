"""Units that leave a node: they are reported when their states can be fetched, and offered until they are dropped."""

import time

import pytest

from elastic.core.ids import Batch, Epoch, UnitId
from elastic.core.messages import ApplyStep, DropUnits, InstallUnits, ReleaseUnits, StateStored, UnitsReleased
from elastic.core.pipeline import create_runners
from elastic.core.steps import Position, Step
from elastic.core.unit_host import UnitHost
from elastic.node.offers import Offers
from elastic.node.releases import Releases
from elastic.operators import Stage
from elastic.wire import Refused
from storage.state import BatchTime, StateManager
from tests.elastic.node.context import Recorder, context_of, describe
from tests.elastic.node.operators import History
from tests.elastic.node.states import LEASE, empty_handle, pack, wait_until

UNITS = (UnitId(0, 0), UnitId(0, 1))


def test_offers_above_the_limit_are_withdrawn_when_they_are_stored_oldest_first(manager: StateManager) -> None:
    some = [pack(manager, task) for task in range(3)]
    size = some[0].ref.size
    offers = Offers(limit_bytes=2 * size)
    for one in some:
        offers.put(one)
    assert not offers.has_room
    assert all(offers.has(one.ref) for one in some)
    offers.mark_stored(some[1].ref)
    assert [offers.has(one.ref) for one in some] == [True, False, True]
    with pytest.raises(Refused, match="not offered"):
        offers.download({"state": some[1].ref.key})
    offers.drop([UnitId(0, 0)])
    assert offers.size == size
    assert offers.has_room


@pytest.mark.parametrize("direct", [True, False])
def test_released_units_are_reported_when_their_states_can_be_fetched(manager: StateManager, direct: bool) -> None:
    host = UnitHost(create_runners(describe([Stage(History(), ("key",))]), "fail"))
    units = tuple(empty_handle(task) for task in range(3))
    for handle in host.install(InstallUnits(Epoch(1), units, ())).to_load:
        assert host.set_state(handle, None)
    offers, recorder = Offers(), Recorder()
    reports = recorder.reports
    releases = Releases(context_of(recorder), host, manager, offers)
    releases.begin(ReleaseUnits(Epoch(1), UNITS, LEASE, direct, cause="e7"))
    wait_until(lambda: not releases.advance() and any(isinstance(report, UnitsReleased) for report in reports))
    [released] = [report for report in reports if isinstance(report, UnitsReleased)]
    assert released.stored is not direct
    assert sorted(ref.unit.number for ref in released.states) == [0, 1]
    if direct:
        wait_until(lambda: sum(isinstance(report, StateStored) for report in reports) == 2)
        assert all(offers.has(ref) for ref in released.states)
    for ref in released.states:
        manager.load(ref)
    releases.drop(DropUnits(Epoch(1), UNITS))
    assert offers.size == 0
    assert {report.cause for report in reports} == {"e7"}
    releases.close()


def test_a_release_is_reported_only_when_all_its_units_have_stopped(manager: StateManager) -> None:
    host, step = UnitHost(create_runners(describe([Stage(History(), ("key",))]), "fail")), Position(Batch(0), 0)
    for handle in host.install(InstallUnits(Epoch(1), (empty_handle(0), empty_handle(1)), ())).to_load:
        assert host.set_state(handle, None)
    host.add_step(ApplyStep(Epoch(1), Step(step, True, (), BatchTime(0, 0))))
    [ready] = host.ready_steps()
    host.take(ready._replace(units=UNITS[:1]), {})
    recorder = Recorder()
    releases = Releases(context_of(recorder), host, manager, Offers())
    releases.begin(ReleaseUnits(Epoch(1), UNITS, LEASE))
    assert releases.advance()
    wait_until(lambda: not releases.advance() and releases._saver.has_room)
    time.sleep(0.05)
    assert not releases.advance()
    assert recorder.reports == []
    host.take(host.ready_steps()[0], {})
    wait_until(lambda: not releases.advance() and bool(recorder.reports))
    [released] = recorder.reports
    assert isinstance(released, UnitsReleased)
    assert [(ref.unit, ref.batch) for ref in released.states] == [(UNITS[0], 0), (UNITS[1], 0)]
    releases.close()
