"""Settings of every process. Environment variables are the only source; README lists them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import environ
import structlog
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config.services import postgres as embedded_postgres
from config.services.folder import DEFAULT_NAME, data_folder
from traces.gate import clean_log_line

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()


def _whole_number(name: str, default: int, *, at_least: int, at_most: int) -> int:
    text = os.environ.get(name, "") or str(default)
    if not (text.isascii() and text.isdigit() and at_least <= int(text) <= at_most):
        raise ImproperlyConfigured(
            f"{name} is {text!r}; it must be a whole number from {at_least} to {at_most}."
        )
    return int(text)


# ── Where things are ────────────────────────────────────────────────────────────────────────────
DATA_FOLDER = data_folder(BASE_DIR / env.str("INTERLOCK_DATA_DIR", default=DEFAULT_NAME))
DATA_DIR = DATA_FOLDER.root
PORT = _whole_number("PORT", 8000, at_least=1, at_most=65_535)
# `web` for daphne, `worker`, `beat`, else a command: decides how connections are kept.
PART = env.str("INTERLOCK_PART", default="command")

# ── Safety ──────────────────────────────────────────────────────────────────────────────────────
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="")
if "SECRET_KEY" not in os.environ and DATA_FOLDER.secret_key_file.is_file():
    # `make up` made one for this data folder.
    SECRET_KEY = DATA_FOLDER.secret_key_file.read_text().strip()
if not SECRET_KEY and DEBUG:
    SECRET_KEY = "not-secret-debug-only"  # noqa: S105
if not SECRET_KEY:
    raise ImproperlyConfigured(
        "SECRET_KEY is not set and DEBUG is off: set SECRET_KEY to a long random value, "
        "or start with `make up`, which makes one for its data folder."
    )
# Former ones: sessions and stored values made under them stay good.
# What raw texts are sealed under: the first seals, all open. Without any, SECRET_KEY does both.
INTERLOCK_DATA_KEYS = env.list("INTERLOCK_DATA_KEYS", default=[])
if any(len(key) < 32 for key in INTERLOCK_DATA_KEYS):
    raise ImproperlyConfigured(
        "INTERLOCK_DATA_KEYS has a key of less than 32 characters; take `openssl rand -base64 32`."
    )
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
# Who scrapes /metrics without being logged in sends it as a bearer; empty: nobody may.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# ── Apps ────────────────────────────────────────────────────────────────────────────────────────
INSTALLED_APPS = [
    "daphne",  # first: it replaces runserver
    "channels",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "runtime_core",
    "approvals",
    "traces",
    "config",
    "evals.shop",  # the demo's business tables
]

MIDDLEWARE = [
    "runtime_core.api.private.PrivateMiddleware",  # outermost: problems are answers too
    "runtime_core.api.problems.ProblemMiddleware",  # it rewrites what the others answer
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.choices.choices",
                "approvals.inbox.context.inbox",
                "traces.context.system",
            ],
        },
    },
]

# ── Database ────────────────────────────────────────────────────────────────────────────────────
EMBEDDED_DATABASE = not env.str("DATABASE_URL", default="")


def _database() -> dict[str, Any]:
    if EMBEDDED_DATABASE:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": embedded_postgres.DATABASE,
            "USER": embedded_postgres.ROLE,
            "HOST": str(DATA_FOLDER.sockets),
            "PORT": str(embedded_postgres.PORT),
        }
    try:
        if env.str("DATABASE_URL").partition("://")[0] not in ("postgresql", "postgres"):
            raise ValueError
        return dict(env.db_url("DATABASE_URL"))
    except ValueError:
        # The text may hold a password, so it is not repeated.
        raise ImproperlyConfigured(
            "DATABASE_URL names no PostgreSQL database: write "
            "postgresql://user:password@host:port/name, or unset it for the embedded one."
        ) from None


# A request that waits longer is lost anyway; a worker's long work is never one statement.
STATEMENT_TIMEOUT_MS = _whole_number(
    "INTERLOCK_STATEMENT_TIMEOUT_MS", 10_000, at_least=0, at_most=3_600_000
)
LOCK_TIMEOUT_MS = 2_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 5_000
# daphne runs each request in a thread of its own, so only a pool bounds its connections.
WEB_POOL_SIZE = _whole_number("INTERLOCK_WEB_CONNECTIONS", 20, at_least=2, at_most=200)

_database_options: dict[str, Any] = {
    "connect_timeout": 5,
    "application_name": f"interlock-{PART}",
    # Nothing is prepared by counting; the few statements of each step ask for it themselves.
    "prepare_threshold": 1_000_000,
    "options": (
        f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout={LOCK_TIMEOUT_MS} "
        f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_TIMEOUT_MS} "
        # What is prepared finds rows by their keys: the server need not plan it anew for its first values.
        "-c plan_cache_mode=force_generic_plan"
    ),
}
if PART == "web":
    _database_options["pool"] = {"min_size": 1, "max_size": WEB_POOL_SIZE, "timeout": 5}

DATABASES = {"default": _database()}
DATABASES["default"].update(
    {
        "CONN_MAX_AGE": 0 if PART == "web" else None,
        "CONN_HEALTH_CHECKS": True,
    }
)
DATABASES["default"]["OPTIONS"] = {
    **DATABASES["default"].get("OPTIONS", {}),
    **_database_options,
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ── Broker, Celery, channel layer ───────────────────────────────────────────────────────────────
EMBEDDED_BROKER = not env.str("REDIS_URL", default="")
REDIS_URL = env.str("REDIS_URL", default="") or DATA_FOLDER.redis_url

# Celery's transport names the same socket with another scheme.
CELERY_BROKER_URL = (
    REDIS_URL.replace("unix://", "redis+socket://", 1)
    if REDIS_URL.startswith("unix://")
    else REDIS_URL
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 5,
    "socket_connect_timeout": 5,
    # A hint that nobody took within this time is worthless: the beat gives new ones.
    "visibility_timeout": 60,
    # Who sends a hint (a web request, the beat) tries once: the default waits 6 s for a dead broker.
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
}
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
# A message is only a hint: acknowledged at once, never run twice because a worker died.
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_ALWAYS_EAGER = False
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"
# These threads only take hints and ticks; runs have threads of their own, so that neither waits for the other.
CELERY_WORKER_CONCURRENCY = 4
INTERLOCK_WORKER_THREADS = env.int("INTERLOCK_WORKER_THREADS", default=16)
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# E-mails that go to the console are no warnings: they are in the worker's log, not on the terminal of `make up`.
CELERY_WORKER_REDIRECT_STDOUTS_LEVEL = "INFO"
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_FOLDER.beat_schedule)


def _tick(task: str, every_s: float) -> dict[str, Any]:
    # A tick that nobody took before the next one is due is dropped: a pile of them helps nobody.
    return {"task": task, "schedule": every_s, "options": {"expires": every_s * 2}}


CELERY_BEAT_SCHEDULE = {
    "dispatch": _tick("runtime_core.dispatch", 1.0),
    "reconcile": _tick("runtime_core.reconcile", 1.0),
    "expire": _tick("runtime_core.expire", 2.0),
    "tidy": _tick("runtime_core.tidy", 300.0),
    "seal": _tick("traces.seal", 1.0),
    "export": _tick("traces.export", 2.0),
    "retain": _tick("traces.retain", 600.0),
    "purge": _tick("traces.purge", 2.0),
    "notify": _tick("approvals.notify", 2.0),
    "escalate": _tick("approvals.escalate", 5.0),
}

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "interlock"},
    },
}

# ── Runtime: what it takes from above through ports, and where tools and models come from ───────
INTERLOCK_PORTS = {
    "redactor": "traces.gate.redactor",
    "audit": "config.record.log",
    "spans": "traces.spans.sink",
    "decision_guard": "approvals.deciding.guard.guard",
    "terms_source": "approvals.policy.stored.source",
    "grants": "approvals.grants.source",
    "overdue": "approvals.teamwork.escalation.overdue",
    "deletions": "traces.deletion.door",
}
TOOL_MODULES: list[str] = [
    "evals.shop.tools",
    "evals.shop.graphs",
    *env.list("TOOL_MODULES", default=[]),
]
INTERLOCK_MODEL = env.str("INTERLOCK_MODEL", default="")

# ── Notifications ───────────────────────────────────────────────────────────────────────────────
# Links in messages start with it.
INTERLOCK_BASE_URL = env.str("INTERLOCK_BASE_URL", default="") or f"http://localhost:{PORT}"
# Lets webhooks go to http:// and to addresses of private networks.
INTERLOCK_WEBHOOK_PRIVATE = env.bool("INTERLOCK_WEBHOOK_PRIVATE", default=False)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="interlock@localhost")
EMAIL_TIMEOUT = 10
for _name, _value in env.email_url("EMAIL_URL", default="consolemail://").items():
    if _name.startswith("EMAIL_"):
        globals()[_name] = _value

# ── Spans for an OpenTelemetry receiver: none unless one is named ───────────────────────────────
INTERLOCK_OTLP_ENDPOINT = env.str("INTERLOCK_OTLP_ENDPOINT", default="")
if INTERLOCK_OTLP_ENDPOINT and not INTERLOCK_OTLP_ENDPOINT.startswith(("http://", "https://")):
    raise ImproperlyConfigured(
        "INTERLOCK_OTLP_ENDPOINT is not an http:// or https:// address, e.g. http://localhost:4318."
    )
_headers = [pair.partition("=") for pair in env.list("INTERLOCK_OTLP_HEADERS", default=[])]
if not all(name.strip() and equals for name, equals, _ in _headers):
    raise ImproperlyConfigured("INTERLOCK_OTLP_HEADERS is not of the form name=value,name=value.")
INTERLOCK_OTLP_HEADERS = {name.strip(): value.strip() for name, _, value in _headers}
# Redacted inputs and outputs too, not only what happened when.
INTERLOCK_OTLP_CONTENT = env.bool("INTERLOCK_OTLP_CONTENT", default=False)

# ── Browser: headers, cookies, static files ─────────────────────────────────────────────────────
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "connect-src": [SELF],
        "img-src": [SELF, "data:"],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    },
}
DEFAULT_EXCEPTION_REPORTER = "traces.error_page.RedactingReporter"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
# Behind TLS set HTTPS=1; a local start over plain http must be able to log in.
HTTPS = env.bool("HTTPS", default=False)
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SESSION_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SAMESITE = "Lax"

STATIC_URL = "/static/"
STATIC_ROOT = env.str("STATIC_ROOT", default=None)  # only for those who run collectstatic
STATICFILES_DIRS = [BASE_DIR / "static"]
# Straight from the apps' folders: no collecting step that a start could forget.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576

# ── Words and time ──────────────────────────────────────────────────────────────────────────────
LANGUAGE_CODE = "en-us"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]

# ── Logs: one stream to stderr, for people on a terminal and for machines else ──────────────────
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
LOG_FORMAT = env.str("LOG_FORMAT", default="json")
_log_processors: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
structlog.configure(
    processors=[*_log_processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "structured": {
            "()": structlog.stdlib.ProcessorFormatter,
            "foreign_pre_chain": [*_log_processors, structlog.stdlib.ExtraAdder()],
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                clean_log_line,
                structlog.processors.JSONRenderer()
                if LOG_FORMAT == "json"
                else structlog.dev.ConsoleRenderer(colors=False),
            ],
        },
    },
    "handlers": {"stderr": {"class": "traces.gate.SafeStreamHandler", "formatter": "structured"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # The default ones would print each line a second time.
        "django": {"handlers": [], "propagate": True, "level": LOG_LEVEL},
        "django.server": {"handlers": [], "propagate": True, "level": LOG_LEVEL},
        "daphne": {"level": "WARNING"},
        "celery": {"level": LOG_LEVEL},
        # One line a tick would drown everything else.
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
    },
}
