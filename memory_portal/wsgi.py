"""The web server's entry: `granian --interface wsgi memory_portal.wsgi:application`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_portal.settings")
application = get_wsgi_application()

from django.utils import timezone  # noqa: E402  # needs the apps

from memory_portal import store  # noqa: E402

store.refuse_old_copies(timezone.now)
store.warm()
