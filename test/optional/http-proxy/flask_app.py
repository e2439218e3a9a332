"""A service that knows nothing of idempotency keys."""

import threading

from flask import Flask, jsonify, request

app = Flask(__name__)
lock = threading.Lock()
charges = []


@app.post("/charges")
def charge():
    order = request.get_json()
    if order.get("amount") == "invalid":
        return jsonify(error="amount"), 422
    with lock:
        charges.append(order)
        number = len(charges)
    response = jsonify(id=number)
    response.set_cookie("session", str(number))
    return response, 201, {"Location": f"/charges/{number}"}


@app.get("/charges")
def listed():
    return jsonify(charges)
