"""The way of agents' requests past what only people need: sessions, languages, messages, static files, the sign-in.

A middleware right below the one that watches. In: a request under /bridge/. Out: its answer with the headers that the site's own
middlewares set on every answer, asked of them once. What is not the plain case, such as a foreign host or plain http where https is
asked for, goes the long way, and so does the page of documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.urls import URLResolver
from django.urls.resolvers import RegexPattern
from django.utils import translation
from django.utils.module_loading import import_string

Answers = Callable[[HttpRequest], HttpResponse]

HERE = "/bridge/"
PEOPLE = "/bridge/v1/docs"
HEADERS = (
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.security.SecurityMiddleware",
)
"""Of settings.MIDDLEWARE, those that set the same headers on every answer."""


@cache
def addresses() -> URLResolver:
    return URLResolver(RegexPattern(f"^{HERE}"), "agent_bridge.urls")


class Front:
    def __init__(self, get_response: Answers) -> None:
        self.get_response = get_response
        self.headers: dict[bool, Mapping[str, str]] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        translation.activate(settings.LANGUAGE_CODE)  # the thread's last visitor may have spoken another one
        if not request.path_info.startswith(HERE) or request.path_info == PEOPLE:
            return self.get_response(request)
        secure = request.is_secure()
        if settings.SECURE_SSL_REDIRECT and not secure:
            return self.get_response(request)
        try:
            request.get_host()
        except DisallowedHost:
            return self.get_response(request)
        request.resolver_match = found = addresses().resolve(request.path_info)
        response: HttpResponse = found.func(request, *found.args, **found.kwargs)
        for name, value in self.fixed(request, secure).items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Content-Length", str(len(response.content)))
        return response

    def fixed(self, request: HttpRequest, secure: bool) -> Mapping[str, str]:
        if secure not in self.headers:
            chain: Answers = lambda request: HttpResponse(headers={"Content-Type": ""})  # noqa: E731
            for name in reversed(HEADERS):
                chain = import_string(name)(chain)
            said = dict(chain(request).items())
            said.pop("Content-Type")
            self.headers[secure] = said
        return self.headers[secure]
