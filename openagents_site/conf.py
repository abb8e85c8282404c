"""Settings of the site itself, read once from the environment at start."""

from __future__ import annotations

from dataclasses import dataclass

from base.conf import setting


@dataclass(frozen=True)
class Site:
    """Where the site is reached and how careful it is. See `settings.py` for what follows from each."""

    public_base_url: str = setting(
        "http://127.0.0.1:8000",
        "PUBLIC_BASE_URL",
        "Address that users and boxes reach the site at. https turns on HSTS.",
        address=True,
    )
    allowed_hosts: tuple[str, ...] = setting(
        (),
        "ALLOWED_HOSTS",
        "Comma-separated host names that are answered. Empty: the host of PUBLIC_BASE_URL.",
    )
    secret_key: str = setting(
        "",
        "SECRET_KEY",
        "Signs sessions and queued tasks. Required with DATABASE_URL; else generated once.",
        secret=True,
    )
    secret_key_fallbacks: tuple[str, ...] = setting(
        (),
        "SECRET_KEY_FALLBACKS",
        "Former values of SECRET_KEY, comma-separated: what they signed or sealed stays good while they are named here.",
        secret=True,
    )
    web_processes: int = setting(1, "WEB_PROCESSES", "Processes of the web server.", minimum=1, maximum=64)
    web_threads: int = setting(
        640,
        "WEB_THREADS",
        "Threads of each process of the web server. A waiting viewer holds one, and no database connection.",
        minimum=2,
        maximum=10_000,
    )
    debug: bool = setting(False, "DEBUG", "Django's debug pages. Never on a machine that others reach.")
    trust_proxy_tls_header: bool = setting(
        False,
        "TRUST_PROXY_TLS_HEADER",
        "Whether X-Forwarded-Proto comes from a proxy of ours that always sets it.",
    )
    environment_label: str = setting(
        "",
        "ENVIRONMENT_LABEL",
        "What the staff pages call this installation, for example staging. Empty: the host of PUBLIC_BASE_URL.",
    )
    log_level: str = setting(
        "INFO", "LOG_LEVEL", "Least severe log line.", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )
    metrics_dir: str = setting(
        "",
        "METRICS_DIR",
        "Folder where the processes of one machine keep their counters. Empty: `metrics` in the state folder.",
    )
    metrics_to_loopback: bool = setting(
        True,
        "METRICS_TO_LOOPBACK",
        "Whether /metrics is shown without a token to requests from the machine itself that no proxy forwarded. Never where the "
        "provider is on it: its boxes ask from there too.",
    )
