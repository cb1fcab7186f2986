"""The broker that is a folder, for a machine without one: kombu's own, but for two moments at which it would stop a worker.

A message appears whole or not at all: kombu's reader may take a file that its writer is still at. And one that cannot be read is
dropped, as any doorbell may be: the job's row is the truth, and the sweep rings again. Imports kombu only.
"""

from __future__ import annotations

import os
import time
from json import JSONDecodeError
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):  # type: ignore[misc]  # kombu has no annotations
    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:
        folder, name = Path(self.data_folder_out), uuid4()
        part = folder / f".{name}.part"
        part.write_text(dumps(payload))
        os.replace(part, folder / f"{time.monotonic_ns() // 1_000_000}_{name}.{queue}.msg")

    def _get(self, queue: str) -> Any:
        try:
            return super()._get(queue)
        except JSONDecodeError:
            raise Empty from None


class Transport(filesystem.Transport):  # type: ignore[misc]
    Channel = Channel
