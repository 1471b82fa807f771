"""The options of level auto become one request of each level."""

from typing import Any

import pytest

from elastic.control import KeyRequest, ScaleRequest, make_requests
from elastic.errors import InvalidRequest


def test_theta_is_the_tolerance_of_both_levels_and_shared_options_go_to_both() -> None:
    tasks, keys = make_requests({"theta": 0.3, "relax": False, "bytes_per_node": 9.0})
    assert tasks == ScaleRequest(tau=0.3, relax=False, bytes_per_node=9.0)
    assert keys == KeyRequest(theta=0.3, relax=False, bytes_per_node=9.0)


def test_options_of_one_level_go_to_that_level() -> None:
    tasks, keys = make_requests({"mode": "live", "key_strategy": "mixed", "most_entries": 7, "stage": "counts"})
    assert tasks == ScaleRequest(tau=KeyRequest.theta, mode="live")
    assert keys == KeyRequest(strategy="mixed", most_entries=7, stage="counts")


@pytest.mark.parametrize("how", [{"strategy": "ssm"}, {"tau": 0.1}, {"colour": "blue"}], ids=str)
def test_an_option_whose_level_is_not_clear_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=f"{next(iter(how))} is not an option of level 'auto'"):
        make_requests(how)
