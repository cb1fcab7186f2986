"""`POST portal-links`: the way by which a host sends a customer into the portal. In: who they are. Out: an address, good once.

Whoever may name the address for sign-in codes decides who comes in as whom: that is for the host's key alone, never for a token
that an agent holds.
"""

from __future__ import annotations

from django.http import HttpResponse
from ninja import Router

from agent_bridge import problems
from agent_bridge.auth import LINKS
from agent_bridge.exchange import AgentRequest, KeyAuth, said, statuses
from agent_bridge.problems import Problem
from agent_bridge.schemas import LinkIn, LinkOut
from memory_portal import handoff, store

router = Router()


@router.post(
    "/portal-links",
    auth=KeyAuth(LINKS),
    response={201: LinkOut, **statuses(409, 415)},
    summary="Send a customer into the portal",
)
def make_link(request: AgentRequest, data: LinkIn) -> HttpResponse:
    """An address that signs this customer in, once, within a minute. Makes the customer when they are new."""
    grant, now = request.auth, request.now
    subject = store.Subject(data.subject_id, grant.profile)
    if grant.subject not in (None, subject):
        raise Problem("subject_bound")
    if grant.subject and (data.email is not None or data.display_name is not None):
        raise Problem("key_needed")
    if not handoff.same_site(data.next):
        raise problems.invalid("#/next", "path", "takes a path of the portal, such as /suggestions/")
    store.welcome(subject, now=now, display_name=data.display_name, email=data.email)
    token, until = handoff.offer(subject, now=now, language=data.language, next=data.next)
    return said(LinkOut(url=handoff.address(token, request), expires_at=until), 201)
