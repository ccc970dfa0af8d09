"""What daphne serves: pages and API over HTTP, live views over websockets."""

from __future__ import annotations

import os

# A web process takes its database connections from a bounded pool (see settings).
os.environ.setdefault("INTERLOCK_PART", "web")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

# These need the app registry, which the line above has filled.
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

from config.checks import require_sound_settings
from config.flow import FlowControl
from config.origin import OwnOriginOnly, refuse
from config.urls import websocket_urlpatterns

# Only `manage.py` runs Django's checks, and daphne is started without it.
require_sound_settings()

# Who listens is each socket's own question: it must ask again while it is open. An address that
# nobody serves is refused like any other, instead of raising in the server.
sockets = URLRouter(
    [*websocket_urlpatterns, re_path("", refuse)]  # type: ignore[arg-type]  # the stub knows views only
)
application = ProtocolTypeRouter(
    {
        "http": FlowControl(django_application),
        "websocket": FlowControl(OwnOriginOnly(sockets)),
    }
)
