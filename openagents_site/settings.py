"""Django settings. Everything that differs between installations comes from the environment; `.env.example` lists it.

Without DATABASE_URL this is the *embedded* installation: PostgreSQL and the box provider are the ones that `bin/up`
starts, and secrets are generated once into the state folder. With DATABASE_URL nothing is generated or assumed.
"""

from __future__ import annotations

import logging
import os
import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import environ
import pghistory

from base import dead_peers, embedded_postgres, state_root
from base.conf import from_environment
from base.retention import RetentionSettings
from boxes.conf import BoxApi
from conversations.conf import ConversationSettings
from forge.conf import ForgeSettings
from openagents_site import environment_check
from openagents_site.conf import Site
from openagents_site.database_url import database_of
from openagents_site.log_config import logging_settings
from openagents_site.metrics.folder import count_in
from openagents_site.sign_in.conf import GITHUB, SignInSettings
from openagents_site.staff import unfold as staff_pages
from openagents_site.webhooks.conf import WebhookSettings
from work.conf import WorkSettings
from work.machines_conf import MachineSettings

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
if (BASE_DIR / ".env").is_file():
    environ.Env.read_env(BASE_DIR / ".env")

environment_check.check(env)
EMBEDDED = not env.str("DATABASE_URL", default="")
STATE_ROOT = state_root.resolve()
# Which process of the Procfile this is: web opens a connection pool, the others keep one connection a thread.
PROCESS_ROLE = env.str("PROCESS_ROLE", default="")

_site = Site(**from_environment(Site, env))
WEB_THREADS = _site.web_threads
DEBUG = _site.debug
# A command beside a running `bin/up` names the port that it found.
_found = env.str("PUBLIC_BASE_URL", default="").strip() or state_root.site_url() or _site.public_base_url
PUBLIC_BASE_URL = _found.rstrip("/")
_public = urlsplit(PUBLIC_BASE_URL)
_host = _public.hostname or ""  # it has one, see `environment_check`
METRICS_TO_LOOPBACK = _site.metrics_to_loopback
ENVIRONMENT_LABEL = _site.environment_label
_TLS = _public.scheme == "https"

SECRET_KEY = _site.secret_key or state_root.private_secret("secret_key")
SECRET_KEY_FALLBACKS = list(_site.secret_key_fallbacks)
count_in(Path(_site.metrics_dir) if _site.metrics_dir else STATE_ROOT / "metrics", PROCESS_ROLE)

ALLOWED_HOSTS = list(_site.allowed_hosts) or [
    _host,
    *(["localhost", "127.0.0.1", "[::1]"] if EMBEDDED else []),
]
CSRF_FAILURE_VIEW = "openagents_site.error_pages.form_refused"
CSRF_TRUSTED_ORIGINS = [PUBLIC_BASE_URL]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _TLS
SECURE_HSTS_SECONDS = 31_536_000 if _TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _TLS
SECURE_REDIRECT_EXEMPT = [
    r"^healthz$",
    r"^readyz$",
    r"^metrics$",
]  # probed on the machine itself, without TLS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
if _site.trust_proxy_tls_header:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

INSTALLED_APPS = [
    "unfold",  # before the admin, whose templates it replaces
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "pgtrigger",
    "pghistory",
    "rest_framework",
    "knox",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "django_structlog",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "axes",
    "accounts",
    "conversations",
    "boxes",
    "runs",
    "work",
    "forge",
    "openagents_site.webhooks",
    "openagents_site",
]
MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "openagents_site.middleware.HistoryMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "axes.middleware.AxesMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]
ROOT_URLCONF = "openagents_site.urls"
WSGI_APPLICATION = "openagents_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [
            BASE_DIR / "openagents_site" / "templates"
        ],  # what the site says wins over what an app brings
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": embedded_postgres.database_settings(STATE_ROOT)
    if EMBEDDED
    else database_of(env.str("DATABASE_URL"))
}
DATABASES["default"]["OPTIONS"].setdefault("connect_timeout", dead_peers.CONNECT_SECONDS)
if PROCESS_ROLE == "web":
    # A waiting or streaming view gives its connection back before it waits, so a few serve hundreds of viewers.
    # Each is checked when it is taken from the pool: after a restart of the database no request meets a dead one.
    DATABASES["default"] |= {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True}
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 20, "timeout": 10}
else:
    DATABASES["default"] |= {"CONN_MAX_AGE": 300, "CONN_HEALTH_CHECKS": True}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# PostgreSQL judges every row by its constraints; that forms do not judge them as well is no news at each command.
SILENCED_SYSTEM_CHECKS = ["models.W045"]

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "openagents_site.sign_in.throttling.ThrottlingBackend",
    "django.contrib.auth.backends.ModelBackend",
]
LOGIN_URL = "account_login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
SIGN_IN = from_environment(SignInSettings, env)
ACCOUNT_ADAPTER = "openagents_site.sign_in.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = False  # each process would count for itself; see AXES below
ACCOUNT_SESSION_REMEMBER = True  # a session lasts SESSION_COOKIE_AGE, nothing is asked
SOCIALACCOUNT_ADAPTER = "openagents_site.sign_in.adapters.GitHubAdapter"
SOCIALACCOUNT_QUERY_EMAIL = False
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_PROVIDERS = {"github": {"OAUTH_PKCE_ENABLED": True}}
if SIGN_IN.get("github_url", GITHUB).rstrip("/") != GITHUB:
    SOCIALACCOUNT_PROVIDERS["github"]["GITHUB_URL"] = SIGN_IN["github_url"]
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = "openagents_site.sign_in.throttling.failure_limit"
AXES_COOLOFF_TIME = "openagents_site.sign_in.throttling.lock_time"
AXES_CLIENT_IP_CALLABLE = "openagents_site.sign_in.throttling.counted_address"
AXES_USERNAME_CALLABLE = "openagents_site.sign_in.throttling.client_name"
AXES_LOCKOUT_CALLABLE = "openagents_site.sign_in.throttling.locked_out"
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # a lock ends when it was said to
AXES_DISABLE_ACCESS_LOG = True  # who signed in is in the log
AXES_ENABLE_ADMIN = False  # `manage.py axes_reset_username` unlocks
AXES_VERBOSE = False
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = ["openagents_site.formats"]
USE_TZ = True
STATIC_URL = "/static/"
# A fresh installation has its pages without a collectstatic: files come straight from the packages.
_STATIC_FROM_PACKAGES = EMBEDDED or DEBUG
STATIC_ROOT = None if _STATIC_FROM_PACKAGES else STATE_ROOT / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "openagents_site.static_files.StaticFiles"},
}
WHITENOISE_USE_FINDERS = _STATIC_FROM_PACKAGES
if _STATIC_FROM_PACKAGES:
    STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.authentication.BearerTokenAuthentication",
        "accounts.authentication.SignedInAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["base.api.parsers.BoundedJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "base.api.pagination.NewestFirstPagination",
    "DEFAULT_FILTER_BACKENDS": ["base.api.filters.FilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "accounts.schema.ScopedAutoSchema",
    "EXCEPTION_HANDLER": "base.api.errors.answer",
    "DATETIME_FORMAT": "iso-8601",
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "OpenAgents Boxes",
    "DESCRIPTION": 'Boxes, runs and what they cost. Errors are `{"error": {"code", "detail", "fields"}}`.',
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "openagents_site.api.examples.add_examples",
    ],
    "PATH_CONVERTER_OVERRIDES": {"id": {"type": "string", "format": "uuid"}},
    "ENUM_NAME_OVERRIDES": {
        "BoxState": "boxes.states.BoxState",
        "SetupStatus": "boxes.states.SetupStatus",
        "RunState": "runs.states.RunState",
        "MachineStatus": "work.states.MachineStatus",
        "MachineTier": "work.states.MachineTier",
        "PairingStatus": "work.states.PairingStatus",
        "StopReason": "boxes.states.StopReason",
        "QueueReason": "boxes.states.QueueReason",
        "ObjectKind": "openagents_site.api.history.NAMES",
        "JobKind": "work.states.JobKind",
        "JobStatus": "work.states.JobStatus",
        "StepStatus": "work.states.StepStatus",
        "IncidentStatus": "work.states.IncidentStatus",
        "Surface": "work.states.Surface",
        "IncidentSurface": "work.states.IncidentSurface",
        "MemberRole": "forge.states.Role",
        "IssueState": "forge.states.IssueState",
        "AssignmentState": "forge.states.AssignmentState",
    },
}
KNOX_TOKEN_MODEL = "accounts.ApiToken"  # noqa: S105 - a model's name
MIGRATION_MODULES = {"knox": None}  # its own token table is replaced by ours and must not be made
REST_KNOX = {
    "AUTH_HEADER_PREFIX": "Bearer",
    "TOKEN_PREFIX": "oa_pat_",
    "TOKEN_TTL": None,
    "AUTO_REFRESH": False,
}

# Why each: docs/decisions/0003-django-q2-only-wakes.md
Q_CLUSTER = {
    "name": "openagents-boxes",
    "orm": "default",
    "workers": 2,
    "queue_limit": 2,
    "bulk": 1,
    "poll": 0.5,
    "timeout": 600,
    "retry": 1800,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "catch_up": False,
    "recycle": 500,
    "label": "Scheduled tasks",
}
UNFOLD = staff_pages.UNFOLD
PGHISTORY_APPEND_ONLY = True
# Who and which request travel with each history row; a table of contexts would be one more row a statement.
PGHISTORY_CONTEXT_FIELD = pghistory.ContextJSONField()
PGHISTORY_CONTEXT_ID_FIELD = pghistory.ContextUUIDField()

CONVERSATIONS = from_environment(ConversationSettings, env)
MACHINES = from_environment(MachineSettings, env)
WORK = from_environment(WorkSettings, env)
FORGE = from_environment(ForgeSettings, env)
WEBHOOKS = from_environment(WebhookSettings, env)
RETENTION = from_environment(RetentionSettings, env)
BOX_API = from_environment(BoxApi, env)
if EMBEDDED:
    BOX_API.setdefault("base_url", state_root.provider_url() or BoxApi.base_url)
    BOX_API.setdefault("api_key", state_root.private_secret("provider_key"))

LOGGING_CONFIG = None
logging_settings(level=_site.log_level, human=sys.stderr.isatty() and "PYTEST_VERSION" not in os.environ)
DJANGO_STRUCTLOG_USER_ID_FIELD = "pk"
DJANGO_STRUCTLOG_STATUS_4XX_LOG_LEVEL = (
    logging.INFO
)  # a client's mistake is no trouble of ours; git begins with a 401
SESSION_COOKIE_AGE = int(timedelta(days=7).total_seconds())
