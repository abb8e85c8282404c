"""The product's settings, on the tests' own database server and with nothing of the surroundings' environment."""

from __future__ import annotations

import os

from tests.postgres import ensure_test_cluster

for name in [
    name for name in os.environ if name.startswith(("BOX_", "RUN_", "WORK_", "CONVERSATION_", "FORGE_"))
]:
    del os.environ[name]
os.environ |= {
    "DATABASE_URL": ensure_test_cluster().url(),
    # Output that could still become this secret is held back, so it begins as no test's output ends.
    "SECRET_KEY": "~~only-for-tests-" + "x" * 50,
    "ALLOWED_HOSTS": "testserver,localhost,127.0.0.1",
    "PUBLIC_BASE_URL": "http://testserver",
}

from openagents_site.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a test signs in often
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
BOX_API = {"base_url": "https://box-api.internal", "api_key": "box-tests", "retry_delay_ms": 0}
STATIC_ROOT = None
WHITENOISE_USE_FINDERS = True
