"""A receiver of webhooks that writes rows: the sender repeats each event, and the inbox keeps one row for it.

The inbox is a table of the receiver's own Postgres, DATABASE_URL, and needs no service.
"""

import os
from uuid import uuid4

import psycopg
from fastapi import FastAPI
from fastapi.testclient import TestClient

from onceward.inbox import MIGRATION, once

database = os.environ["DATABASE_URL"]
with psycopg.connect(database) as connection:
    connection.execute(MIGRATION)
    connection.execute("create table if not exists invoices (event text, cents int)")
app = FastAPI()


@app.post("/webhooks")
def receive(event: dict[str, str]) -> dict[str, str]:
    with psycopg.connect(database) as connection:

        def insert() -> str:
            connection.execute("insert into invoices values (%s, %s)", [event["id"], event["cents"]])
            return event["id"]

        # Commits together with the row.
        result = once(connection, "billing", event["id"], insert, fingerprint=event)
    return {"invoice": result.value, "replayed": str(result.replayed)}


sender = TestClient(app)
event = {"id": str(uuid4()), "cents": "4200"}
answers = [sender.post("/webhooks", json=event).json() for _ in range(3)]
assert [answer["replayed"] for answer in answers] == ["False", "True", "True"]
with psycopg.connect(database) as connection:
    count = connection.execute("select count(*) from invoices where event = %s", [event["id"]])
    [invoices] = count.fetchone() or [0]
print(f"{len(answers)} deliveries, {invoices} invoice")
assert invoices == 1
