"""The staff's pages about people: tables (read-only), customers (the page they work from), acts (reveal, correct, forget, erase),
requests (the ledger of requests by hand), office (alarms, staff's own accounts). Writing goes through the store.
"""

from memory_portal.admin import customers, office, requests, tables  # noqa: F401  # registers them
