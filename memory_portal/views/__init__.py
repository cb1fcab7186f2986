"""The pages. A view is a guard, a form, one call into the store, and an answer; time is read once, here at the edge.

`customer_required` is the one guard: it hands the view the customer this session is. What is not this customer's is
404, the same as what never was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from memory_portal import store
from memory_portal.enums import ActorKind
from memory_portal.models import Customer

P = ParamSpec("P")


class Request(HttpRequest):
    htmx: HtmxDetails
    customer: Customer | None = None


Guarded = Callable[Concatenate[Request, Customer, P], HttpResponse]


def customer_required(view: Guarded[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Hand the view the customer this session is, or the way to sign in. Nothing it answers is kept by any cache."""

    @wraps(view)
    def guarded(request: Request, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return to_sign_in(request)
        customer = store.customer_of_user(request.user.pk)
        if customer is None:
            response = render(request, "no_customer.html", status=403)
        else:
            request.customer = customer
            try:
                response = view(request, customer, *args, **kwargs)
            except store.NotFound as error:
                raise Http404 from error
        response["Cache-Control"] = "no-store"
        return response

    return guarded  # type: ignore[return-value]  # every request is a Request once the middleware has seen it


def to_sign_in(request: Request) -> HttpResponse:
    """To the sign-in page and back to where the person was; an htmx action takes the whole page along."""
    here = request.htmx.current_url_abs_path if request.htmx else request.get_full_path()
    if request.method != "GET" and not request.htmx:
        here = reverse("facts")
    url = f"{reverse(settings.LOGIN_URL)}?{urlencode({'next': here or reverse('facts')})}"
    return moved(request, url)


def moved(request: Request, url: str) -> HttpResponse:
    """To another page: htmx would follow an ordinary redirect and put that page inside this one."""
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


def posted(request: Request) -> QueryDict | None:
    """A form's data; a POST without a single field is a form as well, and None is none."""
    return request.POST if request.method == "POST" else None


def acting(customer: Customer) -> store.Actor:
    return store.Actor(ActorKind.CUSTOMER, str(customer.pk))


def frame(request: HttpRequest) -> dict[str, Any]:
    """What every page's frame needs. Nothing here costs a query until a template asks for it."""
    customer: Customer | None = getattr(request, "customer", None)
    return {
        **brand(customer.profile if customer else ""),
        "customer": customer,
        "tab": tab_of(request),
        "who": salted_hmac("memory_portal.drafts", str(customer.pk)).hexdigest()[:12] if customer else "",
        "waiting": cache(lambda: store.waiting(customer.pk, timezone.now())) if customer else 0,
        "memory_on": store.current_policy().memory,
        "several_shops": len(store.current_policy().profiles) > 1,
        "languages": settings.LANGUAGES,
    }


def brand(profile_name: str) -> dict[str, str]:
    """Whose page it is: the profile's, or the deployment's one brand."""
    policy = store.current_policy()
    profile = policy.profiles.get(profile_name, policy.profiles[policy.default_profile])
    style = settings.BRAND_STYLE or profile.brand
    return {
        "brand_name": settings.BRAND_NAME or profile.name,
        "brand_style": static(f"brands/{style}.css") if style else "",
    }


def tab_of(request: HttpRequest) -> str:
    """The room of the view that answers: facts, suggestions, activity or privacy."""
    match = request.resolver_match
    return match.func.__module__.rpartition(".")[2] if match else ""
