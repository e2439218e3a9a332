"""One client in each process: its connections are not shared."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from . import aio
from ._client import Onceward

C = TypeVar("C", Onceward, aio.Onceward)


def per_process(onceward: C | Callable[[], C]) -> Callable[[], C]:
    """Returns a function that returns the client; of a function, the client that it makes once in each
    process.
    """
    if isinstance(onceward, (Onceward, aio.Onceward)):
        return lambda: onceward
    connect = onceward
    clients: dict[int, C] = {}
    lock = threading.Lock()

    def client() -> C:
        process = os.getpid()
        with lock:
            if process not in clients:
                # Those of other processes can't be used here, and are not closed: their connections are
                # shared.
                clients[process] = connect()
            return clients[process]

    return client
