"""The bridge described: OpenAPI 3.1 as it truly answers, and a page of it. In: the operations. Out: a schema and HTML.

Ninja knows nothing of our headers, of problem+json or of the plain text of a block: they are added here, in one place.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from agent_bridge.exchange import KeyAuth
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
SEGMENTS: dict[str, dict[str, Any]] = {
    "subject_id": {
        "description": "The host's own id of the customer, percent-encoded; with a slash in it, as ~ and its base64url.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-.0-}][ -.0-}]*$"},
        "example": "alice-17",
    },
    "key": {
        "description": "The fact's name; spelled as it is, or as ~ and its base64url.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9][A-Za-z0-9 _-]*$"},
        "example": "seat_preference",
    },
}
"""How a plain one looks. Names in every script are taken: these patterns are for whoever makes up requests from the schema."""

THE_CUSTOMER = {"subject_id": "$request.path.subject_id"}
THE_NAMED = {"subject_id": "$request.body#/subject_id"}
THE_FACT = {**THE_CUSTOMER, "key": "$request.path.key"}
LINKS: dict[str, tuple[int, dict[str, dict[str, str]]]] = {
    "open_session": (201, dict.fromkeys(("write_fact", "hand_over_turns", "read_context_for"), THE_NAMED)),
    "write_fact": (
        201,
        {
            **dict.fromkeys(("read_fact", "write_fact", "delete_fact"), THE_FACT),
            **dict.fromkeys(("search_facts", "list_facts", "clear_facts"), THE_CUSTOMER),
        },
    ),
    "delete_fact": (204, dict.fromkeys(("read_fact", "write_fact"), THE_FACT)),
    "clear_facts": (200, dict.fromkeys(("list_facts", "read_purge_generation"), THE_CUSTOMER)),
    "hand_over_turns": (202, {"read_job": {"job_id": "$response.body#/job_id"}}),
}
"""What to do next with what an operation made or removed."""


class Bridge(NinjaAPI):
    """Ninja, with errors passed on to the guard and a schema that tells the whole truth."""

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        raise exc

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: Any = None) -> OpenAPISchema:
        return Described(self, self.get_root_path(path_params or {}) if path_prefix is None else path_prefix)

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__


class Described(OpenAPISchema):
    def operation_details(self, operation: Operation) -> dict[str, Any]:
        details: dict[str, Any] = super().operation_details(operation)
        path, writes = operation.path, operation.methods[0] in ("PUT", "DELETE")
        for parameter in details["parameters"]:
            if parameter["name"] in SEGMENTS:
                parameter.update(SEGMENTS[parameter["name"]])
        if (
            "{subject_id}" in path
        ):  # An id with a slash that is not sent as ~ makes an address that leads nowhere, or elsewhere.
            for status in (404, 405):
                details["responses"].setdefault(status, dict(details["responses"][400]))
        if path.endswith("/context"):
            details["parameters"].append(IF_NONE_MATCH)
            details["responses"][200]["content"]["text/plain"] = {"schema": {"type": "string"}}
        if path.endswith("/{key}") and writes:
            details["parameters"].append(IF_MATCH)
        if (path.startswith("/subjects/") and writes) or path.endswith(("/turns", "/facts:upsert", "/import")):
            details["parameters"].append(IDEMPOTENCY_KEY)
        if link := LINKS.get(details["operationId"]):
            made, following = link
            details["responses"][made]["links"] = {
                operation_id: {"operationId": operation_id, "parameters": known}
                for operation_id, known in following.items()
            }
        for status, answer in details["responses"].items():
            if status >= 400:
                answer["content"] = {MEDIA_TYPE: answer["content"]["application/json"]}
        return details

    def operation_security(self, operation: Operation) -> list[dict[str, Any]] | None:
        """One entry a scope: any of them is enough."""
        keys = [auth for auth in operation.auth_callbacks if isinstance(auth, KeyAuth)]
        super().operation_security(operation)
        return [{"KeyAuth": [scope]} for key in keys for scope in key.any_of] or None


def page(api: NinjaAPI) -> str:
    """Every operation and every problem as HTML: no script, nothing from elsewhere, nothing of who asks."""
    schema = api.get_openapi_schema(path_prefix="/bridge/v1/")
    operations = [
        {
            "method": method.upper(),
            "path": path,
            "scopes": [scope for entry in operation.get("security", []) for scope in entry["KeyAuth"]],
            "answers": sorted(operation["responses"]),
            "body": _body(operation, schema["components"]["schemas"]),
            **operation,
        }
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    return render_to_string("bridge/docs.html", {"api": api, "operations": operations, "kinds": KINDS})


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The fields of the body, each with whether it must be there."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    model = schemas.get(str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2], {})
    return {name: name in model.get("required", []) for name in model.get("properties", {})}
