"""A task of Celery that sends mails: the queue delivers each message twice, and each mail is sent once.

Needs a Redis, as its broker: REDIS_URL.
"""

import hashlib
import os

from celery import Celery
from celery.contrib.testing.worker import start_worker

from onceward import Onceward, current_claim, join_key, new_key
from onceward.celery import guarded_task

redis_url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
app = Celery("mails", broker=redis_url, backend=redis_url)
mails: list[str] = []


def connect() -> Onceward:
    address = os.environ.get("ONCEWARD_ADDRESS", "http://127.0.0.1:50051")
    return Onceward(address, api_key=os.environ["ONCEWARD_API_KEY"])


def hash_of(to: str) -> str:
    """Administrators see keys, and should not see addresses."""
    return hashlib.sha256(to.encode()).hexdigest()


Mail = guarded_task(connect, "mails", key=lambda order, to: join_key("receipt", order, hash_of(to)))


@app.task(base=Mail, acks_late=True, reject_on_worker_lost=True)
def send_receipt(order: str, to: str) -> str:
    mails.append(to)
    # The provider keeps the id, so that a person can find the mail in its log.
    return current_claim().derive_key("receipt")


order, people = new_key(), ["ada", "bob", "eve"]
with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False):
    results = [send_receipt.delay(order, to) for to in people * 2]
    ids = [result.get(timeout=60) for result in results]
assert ids[:3] == ids[3:]
print(f"{len(results)} messages, {len(mails)} mails")
assert sorted(mails) == people
