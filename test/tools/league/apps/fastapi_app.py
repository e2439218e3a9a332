"""A service behind one of the libraries of PyPI: fastapi_app.py SUBJECT PORT REDIS."""

import asyncio
import sys

import uvicorn
from fastapi import Body, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse

subject, port, redis_url = sys.argv[1:]
app = FastAPI()
effects = 0


def redis_client(**options):
    import redis.asyncio

    return redis.asyncio.from_url(redis_url, **options)


async def charge(request: Request, charge: dict = Body()):
    global effects
    if "x-fail" in request.headers:
        raise HTTPException(503)
    if charge.get("amount") == "invalid":
        raise HTTPException(422)
    await asyncio.sleep(0.02)
    effects += 1
    content = {"id": effects}
    if subject == "pyidempotent":
        return content
    response = JSONResponse(content, 201, headers={"location": f"/charges/{effects}"})
    # Its README: responses that set cookies are never stored.
    if subject != "fastapi-idempotency":
        response.set_cookie("session", str(effects))
    return response


if subject == "asgi-idempotency-header":
    from idempotency_header_middleware import IdempotencyHeaderMiddleware
    from idempotency_header_middleware.backends import RedisBackend

    app.add_middleware(IdempotencyHeaderMiddleware, backend=RedisBackend(redis=redis_client()))
elif subject == "fastapi-idempotency":
    from fastapi_idempotency import IdempotencyMiddleware

    app.add_middleware(
        IdempotencyMiddleware,
        path_prefix=None,
        scope=lambda request: request.headers.get("authorization", ""),
    )
elif subject == "ichido":
    from ichido import IchidoMiddleware, RedisIdempotencyStore

    app.add_middleware(IchidoMiddleware, store=RedisIdempotencyStore(redis_client()))
elif subject == "idemkit":
    from idemkit import HttpConfig, IdempotencyMiddleware, RedisBackend

    app.add_middleware(
        IdempotencyMiddleware,
        backend=RedisBackend.from_url(redis_url),
        config=HttpConfig(scope=lambda req: req.headers.get("authorization", "")),
    )
elif subject == "pyidempotent":
    from pyidempotent import IdempotencyConflict, IdempotencyKeyMissing, IdempotencyProcessing, idempotent
    from pyidempotent.backends.redis import RedisBackend

    charge = idempotent(backend=RedisBackend(redis_client()))(charge)

    STATUSES = {IdempotencyConflict: 422, IdempotencyKeyMissing: 400, IdempotencyProcessing: 409}
    for error, status in STATUSES.items():
        app.add_exception_handler(
            error, lambda _, exc, status=status: JSONResponse({"detail": str(exc)}, status)
        )


@app.get("/count")
async def count():
    return PlainTextResponse(str(effects))


for path in ("/charges", "/refunds"):
    app.add_api_route(path, charge, methods=["POST", "PUT"], status_code=201)

uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error")
