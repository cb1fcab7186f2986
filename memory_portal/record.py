"""The record of processing (GDPR 30) as text, from the inventory. docs/privacy.md is `text()` with the settings as shipped.

What only the company that runs the site can know (who it is, whom it hires) is left open by name.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import override

from memory_portal.columns import COLUMNS, OUTSIDE, kinds_of
from memory_portal.inventory import BASES, KINDS, RECIPIENTS, Kind, times
from memory_portal.store.exporting import LEFT_OUT_FIELDS, LEFT_OUT_MODELS, SECTIONS

EXPORTED = {"memory_portal.Customer", "memory_portal.FactRevision", *SECTIONS.values()}

OPENING = """# What personal data is kept, and why

Written by `python manage.py privacy_record` from `memory_portal/inventory.py`, `columns.py` and the export's lists; not by hand.
Times are those of the settings and the policy as shipped; the page `/privacy` of a running site says its own, in the
visitor's language.

This is an engineer's record, not legal advice. The company that runs the site is the controller and adds what no program can know:
its name and address, its data protection officer, the provider it hosts with, the contracts with those named below, the country
each of them is in, and whether the grounds below fit its case. Transfers: the one provider that this program itself calls is
the model's (`ANTHROPIC_BASE_URL`, only where `EXTRACTOR=claude`), which gets the words of a conversation and no name or number.

Whose data: customers of the company, and its staff. Measures of security (GDPR 32): [asvs.md](asvs.md).

Automated decisions: none. AI reads conversations and notes what was said; names that would carry a price, a right, a credit or
an eligibility are refused (`memory_policy.toml`), and every note stands beside its words, marked as noted by AI.
"""


def text() -> str:
    with override("en"):
        return "\n".join([OPENING, *kinds(), *columns(), *outside()]) + "\n"


def kinds() -> Iterator[str]:
    yield "## By kind\n"
    yield "| kind | what | of whom | why | on what ground | how long | who gets it | on erasure |"
    yield "|---|---|---|---|---|---|---|---|"
    for key, kind in KINDS.items():
        grounds = "; ".join(str(BASES[basis]) for basis in kind.bases) or "no personal data"
        recipients = "; ".join(str(RECIPIENTS[one]) for one in kind.recipients) or "nobody else"
        cells = (f"`{key}`", kind.holds, kind.of, why(kind), grounds, kept(kind), recipients, kind.erased)
        yield f"| {' | '.join(str(cell) for cell in cells)} |"
    yield ""


def kept(kind: Kind) -> str:
    return str(kind.kept) % times()


def why(kind: Kind) -> str:
    return str(kind.why) % times()


def columns() -> Iterator[str]:
    yield "## By column\n"
    yield "A table of another package that holds no personal data is one line.\n"
    yield "| table | column | kind | exported to the customer |"
    yield "|---|---|---|---|"
    for label in COLUMNS:
        if "*" in COLUMNS[label].values():
            yield f"| {label} | all | `machines` | no: no personal data |"
            continue
        for column, kind in kinds_of(label):
            yield f"| {label} | {column} | `{kind}` | {exported(label, column, kind)} |"
    yield ""


def exported(label: str, column: str, kind: str) -> str:
    """Yes, or no and why: the export's own reason where it has one."""
    reason = LEFT_OUT_MODELS.get(label) or LEFT_OUT_FIELDS.get(f"{label}.{column}")
    if reason:
        return f"no: {reason}"
    if label in EXPORTED:
        return "yes"
    return {"machines": "no: no personal data", "staff": "no: about staff"}.get(
        kind, "no: " + NOT_EXPORTED.get(label, "")
    )


NOT_EXPORTED = {
    "memory_portal.ErasureLedger": "begins where an account ends; of a forgotten fact it holds its number only",
    "memory_portal.TrailEnd": "begins where an account ends; counts what is left under a number that leads to nobody",
    "sessions.Session": "says which browsers are signed in; its contents are secrets",
}
"""Tables about customers that the export's own walk does not reach, as no foreign key leads to them or it is not enforced."""


def outside() -> Iterator[str]:
    yield "## Elsewhere\n"
    yield "| where | kind | what |"
    yield "|---|---|---|"
    for where, (kind, what) in OUTSIDE.items():
        yield f"| {where} | `{kind}` | {what} |"
