"""A service behind one of Django's libraries: django_app.py SUBJECT PORT REDIS."""

import json
import sys
import time

import django
from django.conf import settings
from django.core.management import call_command
from django.http import HttpResponse, JsonResponse
from django.urls import path

subject, port, redis_url = sys.argv[1:]
effects = 0
MIDDLEWARE = {
    "django-idempotency-key": "idempotency_key.middleware.IdempotencyKeyMiddleware",
    "drf-idempotency": "drf_idempotency.middleware.IdempotencyMiddleware",
}
settings.configure(
    SECRET_KEY="league",
    DATABASES={},
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[MIDDLEWARE[subject]],
    INSTALLED_APPS=["drf_idempotency"] if subject == "drf-idempotency" else [],
    IDEMPOTENCY={
        "BACKEND": "drf_idempotency.backends.redis.RedisBackend",
        "BACKEND_OPTIONS": {"url": redis_url},
    },
    # The status of the original request, as the documentation allows.
    IDEMPOTENCY_KEY={"CONFLICT_STATUS_CODE": None},
    USE_TZ=True,
    APPEND_SLASH=False,
)
django.setup()


def charge(request):
    global effects
    if "x-fail" in request.headers:
        return JsonResponse({}, status=503)
    if json.loads(request.body).get("amount") == "invalid":
        return JsonResponse({}, status=422)
    time.sleep(0.02)
    effects += 1
    response = JsonResponse({"id": effects}, status=201, headers={"location": f"/charges/{effects}"})
    response.set_cookie("session", str(effects))
    return response


def count(_request):
    return HttpResponse(str(effects))


urlpatterns = [path("count", count), path("charges", charge), path("refunds", charge)]
call_command("runserver", f"127.0.0.1:{port}", use_reloader=False, verbosity=0)
