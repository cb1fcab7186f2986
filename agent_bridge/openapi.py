"""The bridge described: OpenAPI 3.1 as it truly answers, and a page of it. In: the operations. Out: a schema and HTML.

Ninja knows nothing of our headers, of problem+json or of the plain text of a block: they are added here, in one place.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from agent_bridge.problems import KINDS, MEDIA_TYPE

IF_MATCH = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "schema": {"type": "string", "pattern": '^"[0-9]{1,9}"$'},
    "description": "The version that was read, as its ETag gave it. Needed to overwrite.",
}
IF_NONE_MATCH = {
    "in": "header",
    "name": "If-None-Match",
    "required": False,
    "schema": {"type": "string", "pattern": "^[ -~]*$"},
    "description": "The ETag of an earlier answer; 304 when it still holds.",
}
IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
    "description": "Any name for this one request, kept 24 hours: sent again it has no second effect.",
}
SEGMENTS = {
    "subject_id": "The host's own id of the customer, percent-encoded; with a slash in it, as ~ and its base64url.",
    "key": "The fact's name; spelled as it is, or as ~ and its base64url.",
}


class Bridge(NinjaAPI):
    """Ninja, with errors passed on to the guard and a schema that tells the whole truth."""

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        raise exc

    def get_openapi_schema(self, **where: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**where)
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                complete(path, method, operation)
        return schema


def complete(path: str, method: str, operation: dict[str, Any]) -> None:
    parameters: list[dict[str, Any]] = operation["parameters"]
    for parameter in parameters:
        if parameter["name"] in SEGMENTS:
            parameter["description"] = SEGMENTS[parameter["name"]]
    if path.endswith("/context"):
        parameters.append(IF_NONE_MATCH)
        operation["responses"][200]["content"]["text/plain"] = {"schema": {"type": "string"}}
    if path.endswith("/{key}") and method in ("put", "delete"):
        parameters.append(IF_MATCH)
    if method in ("put", "delete") or path.endswith("/turns"):
        parameters.append(IDEMPOTENCY_KEY)
    for status, answer in operation["responses"].items():
        if status >= 400:
            answer["content"] = {MEDIA_TYPE: answer["content"]["application/json"]}


def page(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    """Every operation and every problem, rendered here: no script, nothing from elsewhere."""
    schema = api.get_openapi_schema(path_prefix="/bridge/v1/")
    operations = [
        {"method": method.upper(), "path": path, **operation, "body": _body(operation)}
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    return render(request, "bridge/docs.html", {"api": api, "operations": operations, "kinds": KINDS})


def _body(operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]
