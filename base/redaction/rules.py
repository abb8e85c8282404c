"""What counts as a secret, as data. `docs/reference/redaction.md` is the list for readers."""

from __future__ import annotations

from dataclasses import dataclass

MARK = "[REDACTED]"
URL_MARK = "[REDACTED_URL]"

WORD = r"A-Za-z0-9_\-"  # URL-safe base64
DOTTED = r"A-Za-z0-9._\-"


@dataclass(frozen=True, slots=True)
class TokenRule:
    """A word that begins with `prefix` and goes on with at least `least` characters of the set `follow`."""

    prefix: str
    follow: str
    least: int


TOKENS = (
    TokenRule("sk-", WORD, 16),  # OpenAI, OpenRouter, Anthropic
    TokenRule("oa_pat_", DOTTED, 16),  # ours: of a person, of an agent, of an assignment
    TokenRule("oa_agent_", DOTTED, 16),
    TokenRule("oa_assignment_", DOTTED, 16),
    TokenRule("smct_", WORD, 16),  # ours: of a paired machine
    TokenRule("AKIA", "A-Z0-9", 16),  # AWS
    TokenRule("ASIA", "A-Z0-9", 16),
    TokenRule("AIza", WORD, 35),  # Google
    TokenRule("ya29.", WORD, 16),
    TokenRule("ghp_", "A-Za-z0-9", 16),  # GitHub
    TokenRule("gho_", "A-Za-z0-9", 16),
    TokenRule("ghu_", "A-Za-z0-9", 16),
    TokenRule("ghs_", DOTTED, 16),
    TokenRule("ghr_", "A-Za-z0-9", 16),
    TokenRule("github_pat_", WORD, 16),
    TokenRule("glpat-", DOTTED, 16),  # GitLab
    TokenRule("xoxa-", WORD, 10),  # Slack
    TokenRule("xoxb-", WORD, 10),
    TokenRule("xoxe-", WORD, 10),
    TokenRule("xoxp-", WORD, 10),
    TokenRule("xoxr-", WORD, 10),
    TokenRule("xoxs-", WORD, 10),
    TokenRule("xapp-", WORD, 10),
    TokenRule("npm_", "A-Za-z0-9", 30),  # npm, PyPI
    TokenRule("pypi-AgE", WORD, 16),
    TokenRule("hf_", "A-Za-z0-9", 30),  # Hugging Face
    TokenRule("sk_live_", "A-Za-z0-9", 16),  # Stripe
    TokenRule("rk_live_", "A-Za-z0-9", 16),
    TokenRule("dop_v1_", "a-f0-9", 32),  # DigitalOcean
)

BEARER_TOKEN = r"A-Za-z0-9._~+/\-"  # noqa: S105  the characters of a token, not a token
MOST_SPACES = 64
BASIC_DECIDED_AT = 16

# Query parameters that make a URL a secret, each also with - or nothing for _.
URL_PARAMETERS = (
    "access_token",
    "token",
    "api_key",
    "auth_token",
    "authentication_token",
    "secret",
    "credential",
)
PRIVATE_HOSTS = ("desktop", "viewer")
MOST_AUTHORITY = 4_096
LONGEST_PLAIN_USER = 19

# A key block is over at its END line, or after this many characters: the longest RSA key of 16,384 bits has 12,700.
MOST_KEY_BLOCK = 16_384
MOST_KEY_LABEL = 48

# The end of a name that is assigned a secret, by `=` or `:`; the second row by `=` alone, since prose and compilers
# write "token: x" of other things.
ASSIGNED = (
    "password",
    "passwd",
    "passphrase",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "secret_key",
    "private_key",
    "client_secret",
    "auth_token",
    "access_token",
    "refresh_token",
)
ASSIGNED_BY_EQUALS = ("token", "secret", "_pwd")
ASSIGNED_LEAST = 4
ASSIGNED_BY_EQUALS_LEAST = 8
ASSIGNED_DECIDED_AT = 12
NO_SECRETS = frozenset(
    {"none", "null", "true", "false", "undefined", "required", "optional", "string", "[redacted]"}
)

SECRET_WORD_LEAST, SECRET_WORD_MOST = 40, 100
SHORTEST_LISTED = 4

# Keys of structured data whose whole value is withheld, compared in lower case without _ and -.
PRIVATE_KEYS = (
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "password",
    "privatekey",
    "secret",
    "token",
)
