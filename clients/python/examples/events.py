"""A receiver of a provider's webhooks, which send no Idempotency-Key: the key is the id of the event.

The signature is checked first, and covers the id, so that no one else can take an event's key. The provider
sends the event twice at one time, and again until the answer is 200, and its effect happens once.
"""

import hashlib
import hmac
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from starlette.responses import Response

from onceward import OncewardError
from onceward.aio import Claim, Onceward

SECRET = b"shared with the provider"
address = os.environ.get("ONCEWARD_ADDRESS", "http://127.0.0.1:50051")
onceward = Onceward(address, api_key=os.environ["ONCEWARD_API_KEY"])
app = FastAPI()
shipped: list[str] = []


def sign(body: bytes) -> str:
    return hmac.new(SECRET, body, hashlib.sha256).hexdigest()


@app.post("/webhooks")
async def receive(request: Request) -> Response:
    body = await request.body()
    if not hmac.compare_digest(sign(body), request.headers.get("signature", "")):
        return Response(status_code=401)
    event = json.loads(body)

    async def ship(claim: Claim) -> None:
        if claim.attempt == 1:
            raise ConnectionError("the carrier was unreachable")  # Releases the claim, and the answer is 500.
        shipped.append(claim.derive_key("carrier"))

    try:
        # The provider sends the event again, so a duplicate need not wait for the one that runs.
        await onceward.run("shop-events", event["id"], ship, on_in_progress="throw")
    except OncewardError as error:
        return Response(error.reason, status_code=503, headers={"retry-after": "1"})
    return Response()


event = json.dumps({"id": f"evt_{uuid4()}", "type": "order.paid"}).encode()


def deliver(provider: TestClient) -> int:
    sent = 1
    while provider.post("/webhooks", content=event, headers={"signature": sign(event)}).status_code != 200:
        time.sleep(0.05)
        sent += 1
    return sent


with TestClient(app, raise_server_exceptions=False) as provider, ThreadPoolExecutor(2) as deliveries:
    sent = sum(deliveries.map(deliver, [provider, provider]))
    forged = provider.post("/webhooks", content=event, headers={"signature": sign(b"another")})
assert sent > 2
print(f"the event was settled, with {len(shipped)} shipment; forged: {forged.status_code}")
assert (len(shipped), forged.status_code) == (1, 401)
