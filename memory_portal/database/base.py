"""Before each request's first statement Django asks a kept connection whether it lives: a round trip as dear as the read itself.

A server that went away, stopped or ended this connection has hung up or said so, and both can be read off the socket at once. Only
a socket with something to read is asked; one that is silent is used. What dies in between is an error, as it always was.
"""

from __future__ import annotations

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        return self._silent() or super().is_usable()

    def _silent(self) -> bool:
        """Open, and with nothing to read from a server that has nothing to say."""
        if self.connection is None or self.connection.closed:
            return False
        waiting = select.poll()
        waiting.register(self.connection.fileno(), select.POLLIN)
        return not waiting.poll(0)
