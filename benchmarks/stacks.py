"""The same context read behind HTTP, as others would build it. Each is a web application by itself, started by web.py.

`bare`: Django's handler, one view, a raw cursor, orjson, no middleware: the least that Django costs. `usual`: models, JsonResponse and the
middleware that a new project has. `fastapi`: async, a pool, a pydantic answer. None checks a key, writes a note or has an ETag.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

URL = os.environ["DATABASE_URL"]
PROFILE = os.environ.get("BENCH_PROFILE", "retail")
READ = """
SELECT f.key, f.value, f.category, f.version, f.said_at, f.updated_at, f.expires_at FROM memory_portal_memoryfact AS f
WHERE f.customer_id = (SELECT id FROM memory_portal_customer WHERE profile = %s AND subject_id = %s LIMIT 1)
"""
NAMES = ("key", "value", "category", "version", "said_at", "updated_at", "expires_at")


def cut(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = [fact for fact in facts if fact["category"] == "constraint"]
    rest = sorted(
        (fact for fact in facts if fact["category"] != "constraint"), key=lambda fact: fact["updated_at"], reverse=True
    )
    return (first + rest)[:8]


def django(middleware: list[str], urls: str, prepared: bool) -> Any:
    from django.conf import settings

    at = urlsplit(URL)
    options = {"server_side_binding": True, "prepare_threshold": 1} if prepared else {}
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql", "HOST": at.hostname, "PORT": at.port, "USER": at.username,
                "NAME": at.path[1:], "CONN_MAX_AGE": None, "OPTIONS": options,
            }
        },
        ROOT_URLCONF=urls, MIDDLEWARE=middleware, ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="x" * 50, USE_TZ=True,
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.messages"],
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    )  # fmt: skip
    import django as package

    package.setup()
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()


class Urls:
    def __init__(self, *patterns: Any) -> None:
        self.urlpatterns = list(patterns)


def __getattr__(name: str) -> Any:
    """`bare`, `usual` or `fastapi`, made when a server asks for it."""
    if name == "bare":
        import orjson
        from django.http import HttpResponse
        from django.urls import path

        def view(request: Any, subject_id: str) -> HttpResponse:
            from django.db import connection

            with connection.cursor() as cursor:
                cursor.execute(READ, (PROFILE, subject_id))
                facts = cut([dict(zip(NAMES, row, strict=True)) for row in cursor.fetchall()])
            return HttpResponse(orjson.dumps({"always": facts}), content_type="application/json")

        return django([], Urls(path("subjects/<str:subject_id>/context", view)), prepared=True)  # type: ignore[arg-type]
    if name == "usual":
        from django.http import JsonResponse
        from django.urls import path

        middleware = [
            f"django.{place}Middleware"
            for place in (
                "middleware.security.Security", "contrib.sessions.middleware.Session", "middleware.common.Common",
                "middleware.csrf.CsrfView", "contrib.auth.middleware.Authentication", "contrib.messages.middleware.Message",
                "middleware.clickjacking.XFrameOptions",
            )
        ]  # fmt: skip
        urls = Urls()
        application = django(middleware, urls, prepared=False)  # type: ignore[arg-type]
        from django.db import models

        class Customer(models.Model):
            profile, subject_id = models.CharField(max_length=32), models.CharField(max_length=128)

            class Meta:
                app_label, db_table, managed = "bench", "memory_portal_customer", False

        class Fact(models.Model):
            customer = models.ForeignKey(Customer, on_delete=models.CASCADE)
            key, value = models.CharField(max_length=64), models.CharField(max_length=200)
            category, version = models.CharField(max_length=32), models.IntegerField()
            said_at, updated_at, expires_at = models.DateTimeField(), models.DateTimeField(), models.DateTimeField()

            class Meta:
                app_label, db_table, managed = "bench", "memory_portal_memoryfact", False

        def slow(request: Any, subject_id: str) -> JsonResponse:
            held = Fact.objects.filter(customer=Customer.objects.get(profile=PROFILE, subject_id=subject_id))
            return JsonResponse({"always": cut([{name: getattr(fact, name) for name in NAMES} for fact in held])})

        urls.urlpatterns.append(path("subjects/<str:subject_id>/context", slow))
        return application
    if name == "fastapi":
        from contextlib import asynccontextmanager
        from datetime import datetime

        from fastapi import FastAPI
        from psycopg_pool import AsyncConnectionPool
        from pydantic import BaseModel

        class FactOut(BaseModel):
            key: str
            value: str
            category: str
            version: int
            said_at: datetime
            updated_at: datetime
            expires_at: datetime | None

        class Answer(BaseModel):
            always: list[FactOut]

        async def ready(connection: Any) -> None:
            connection.prepare_threshold = 1
            await connection.set_autocommit(True)

        pool = AsyncConnectionPool(URL, open=False, min_size=4, max_size=8, configure=ready)

        @asynccontextmanager
        async def life(app: Any) -> Any:
            await pool.open()
            yield
            await pool.close()

        app = FastAPI(lifespan=life)

        async def quick(subject_id: str):  # type: ignore[no-untyped-def]  # FastAPI takes its answer from below
            async with pool.connection() as connection:
                cursor = await connection.execute(READ, (PROFILE, subject_id))
                rows = await cursor.fetchall()
            return Answer(
                always=[FactOut(**fact) for fact in cut([dict(zip(NAMES, row, strict=True)) for row in rows])]
            )

        app.get("/subjects/{subject_id}/context", response_model=Answer)(quick)
        return app
    raise AttributeError(name)
