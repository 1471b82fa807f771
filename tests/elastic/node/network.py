"""A network inside this process from which a test can cut off an address."""

from typing import Any

from elastic.local.network import LocalEndpoint, LocalNetwork, LocalPeer
from elastic.wire import CALL_SECONDS, PeerUnavailable


class CuttablePeer(LocalPeer):
    def __init__(self, network: "CuttableNetwork", address: str, token: str) -> None:
        super().__init__(address, token, network.find)

    def call(self, action: str, document: dict[str, Any], timeout: float = CALL_SECONDS) -> Any:
        answer = super().call(action, document, timeout)
        self._endpoint()  # the answer is lost if the handler was cut off meanwhile
        return answer


class CuttableNetwork(LocalNetwork):
    """While an address is in `cut_off`, nothing gets there, and no answer comes from there."""

    def __init__(self) -> None:
        super().__init__()
        self.cut_off: set[str] = set()

    def connect(self, address: str, token: str) -> CuttablePeer:
        return CuttablePeer(self, address, token)

    def find(self, address: str) -> LocalEndpoint | None:
        if address in self.cut_off:
            raise PeerUnavailable(f"{address} is cut off")
        return self._endpoints.get(address)
