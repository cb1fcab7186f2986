"""Loaded before Django's settings: of tests that run side by side, each process gets a database server of its own.

Some of what is tested holds for a whole server (which transactions are still open), not only for one database.
"""

import os
from pathlib import Path

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["VAR_DIR"] = str(Path(os.environ.get("VAR_DIR", "var/test")) / worker)
