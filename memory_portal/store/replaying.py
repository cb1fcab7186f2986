"""After a restore: what the ledger's file knows and the restored copy does not is done again, in the order in which it happened.

In: the time. Out: how much of each kind. Each line is one transaction with its own row, so that a replay that dies goes on where
it was; what was written after the forgetting (an account opened anew, a fact told again) is left alone. Imports acts and erasure.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from django.contrib.sessions.models import Session
from django.db import connection, transaction

from memory_portal.enums import ActorKind, EventKind, Noted
from memory_portal.models import Customer, ErasureLedger, Ticket
from memory_portal.store import acts, ledger
from memory_portal.store.desk import CLOCK, forget_rows, locked
from memory_portal.store.erasure import erase
from memory_portal.store.types import Actor

GO_ON = """
SELECT setval(pg_get_serial_sequence('memory_portal_erasureledger', 'epoch'),
    GREATEST(%s, (SELECT max(epoch) FROM memory_portal_erasureledger)))
"""


def replay(*, now: datetime) -> dict[str, int]:
    """Do again whatever this copy does not know of. All sign-ins end: the copy's may be of people who signed out since.

    Returns how many lines of each kind there were, and under "done" how many of them changed something.
    """
    done: Counter[str] = Counter()
    missing = ledger.unknown(now)
    if missing:
        with connection.cursor() as cursor:  # What comes after must not take the numbers of these.
            cursor.execute(GO_ON, [max(ledger.outside())])
        Session.objects.all().delete()
        Ticket.objects.all().delete()
    for said in missing:
        row = ledger.entry(said)
        with transaction.atomic(), ledger.doing_again(row):
            done["done"] += _again(row)
            row.save(force_insert=True)
        done[row.kind] += 1
    return dict(done)


def _again(row: ErasureLedger) -> bool:
    """Whether there was anything to do. Numbers are given out anew after a restore, so each is checked against the time."""
    customer = Customer.objects.filter(pk=row.customer_number, created_at__lte=row.at).first()
    if customer is None:
        return False
    match row.kind:
        case Noted.ERASED:
            if row.pseudonym not in ledger.pseudonyms(customer.profile, customer.subject_id):
                return False
            erase(customer.pk, CLOCK, now=row.at, reason="replayed")
        case Noted.FORGOTTEN:
            with locked(customer.pk, CLOCK, row.at) as desk:
                rows = [fact for fact in desk.rows.values() if fact.pk == row.fact_id and fact.created_at <= row.at]
                forget_rows(desk, rows, EventKind.FORGOTTEN)
                return bool(rows)
        case Noted.CLEARED:
            acts.clear(customer.pk, CLOCK, now=row.at)
        case Noted.CONSENT_WITHDRAWN:
            acts.withdraw_consent(customer.pk, CLOCK, now=row.at, purpose=row.code)
        case _:
            what, _, turn = row.kind.partition("_")
            person = Actor(ActorKind.CUSTOMER, str(customer.pk))  # Nobody else may resume.
            (acts.pause if turn == "paused" else acts.resume)(customer.pk, what, person, now=row.at)
    return True


def still_there() -> int:
    """How many accounts that the file says were erased stand in this database all the same. Looks at every customer."""
    erased = {row.pseudonym: row.at for row in map(ledger.entry, ledger.outside().values()) if row.kind == Noted.ERASED}
    people = Customer.objects.only("profile", "subject_id", "created_at").iterator()
    return sum(
        any(row.created_at <= erased[name] for name in ledger.pseudonyms(row.profile, row.subject_id) if name in erased)
        for row in people
    )
