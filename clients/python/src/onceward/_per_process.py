"""One client in each process: its connections are not shared."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from ._client import Onceward


def per_process(onceward: Onceward | Callable[[], Onceward]) -> Callable[[], Onceward]:
    """Returns a function that returns the client; of a function, the client that it makes once in each
    process.
    """
    if isinstance(onceward, Onceward):
        return lambda: onceward
    connect = onceward
    clients: dict[int, Onceward] = {}
    lock = threading.Lock()

    def client() -> Onceward:
        process = os.getpid()
        with lock:
            if process not in clients:
                # Those of other processes can't be used here, and are not closed: their connections are
                # shared.
                clients[process] = connect()
            return clients[process]

    return client
