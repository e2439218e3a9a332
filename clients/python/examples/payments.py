"""An API of FastAPI that charges: three deliveries of a request at one time, and one more, charge once."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.testclient import TestClient

from onceward import current_claim, new_key
from onceward.aio import Onceward
from onceward.starlette import OncewardMiddleware

address = os.environ.get("ONCEWARD_ADDRESS", "http://127.0.0.1:50051")
onceward = Onceward(address, api_key=os.environ["ONCEWARD_API_KEY"])
charges: list[str] = []


@asynccontextmanager
async def lifespan(_: FastAPI):
    async with onceward:
        yield


app = FastAPI(lifespan=lifespan)
app.add_middleware(
    OncewardMiddleware,
    onceward=onceward,
    namespace="charges",
    caller=lambda request: request.headers["account"],  # As your API authenticated it.
    on_error="unknown",  # After a charge that raised, no one knows: the namespace's policy decides.
)


@app.post("/charges", status_code=201)
async def charge(order: dict[str, int]) -> dict[str, str]:
    # The bank gets the same key in every attempt.
    charges.append(current_claim().derive_key("bank"))
    return {"charge": charges[-1]}


with TestClient(app) as browser, ThreadPoolExecutor(3) as deliveries:
    headers = {"account": "a-1", "idempotency-key": f'"{new_key()}"'}

    def deliver(_: int):
        # A delivery that meets a running one is refused, and repeated, as clients do.
        while (answer := browser.post("/charges", json={"cents": 4200}, headers=headers)).status_code == 409:
            time.sleep(0.05)
        return answer

    answers = [*deliveries.map(deliver, range(3)), deliver(3)]
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    refused = browser.post("/charges", json={"cents": 1}, headers=headers)
    print(f"{len(answers)} deliveries, {len(charges)} charge; another amount: {refused.status_code}")
    assert (len(charges), refused.status_code) == (1, 422)
