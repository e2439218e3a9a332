"""The tasks of test_celery.py, as a worker loads them."""

import os
import signal
import time
from pathlib import Path

from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded

from onceward import Onceward, OutcomeUnknownError, TerminalError, current_claim
from onceward.celery import guarded_task

app = Celery(broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
ADDRESS = os.environ.get("ONCEWARD_ADDRESS", "")
EFFECTS = Path(os.environ["EFFECTS"])


def connect():
    return Onceward(ADDRESS, api_key="key")


Charge = guarded_task(
    connect,
    "charges",
    key=lambda order: order["id"],
    fingerprint=lambda order: order,
)
Mail = guarded_task(connect, "mails", timeout_ms=1)


Remind = guarded_task(connect, "reminders", mode="at-most-once")
Refund = guarded_task(connect, "refunds")


Transfer = guarded_task(connect, "transfers", key=lambda name: name)


def note(line: str) -> None:
    with EFFECTS.open("a") as file:
        file.write(f"{line}\n")


@app.task(base=Charge, acks_late=True, reject_on_worker_lost=True)
def charge(order):
    note(f"{order['id']} in attempt {current_claim().attempt}")
    if order.get("kills") and current_claim().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if order["cents"] > 1000:
        raise TerminalError("too expensive", {"limit": 1000})
    return {"charge": f"ch_{order['id']}"}


@app.task(base=Remind, autoretry_for=(ConnectionError,), retry_backoff=False)
def remind():
    note("reminder")
    raise ConnectionError("no route")


@app.task(base=Mail, bind=True, acks_late=True)
def mail(self, address):
    note(f"mail to {address} in attempt {current_claim().attempt}")
    if self.request.retries == 0:
        raise self.retry(countdown=0)
    return "sent"


@app.task(base=Refund, acks_late=True, autoretry_for=(Exception,), retry_kwargs={"countdown": 0})
def refund(order_id):
    note(f"refund of {order_id} in attempt {current_claim().attempt}")
    if current_claim().attempt == 1:
        raise OutcomeUnknownError("the bank timed out")
    return "refunded"


@app.task(base=Transfer, acks_late=True, soft_time_limit=1, max_retries=0)
def transfer(name):
    note(f"{name} began")
    if name == "nested":
        # Another operation, which is held elsewhere.
        connect().run("accounts", "a-1", lambda _: None, on_in_progress="throw")
    try:
        while True:
            time.sleep(0.01)
    except SoftTimeLimitExceeded as error:
        if name == "caused":
            raise RuntimeError("the bank is slow") from error
        raise
