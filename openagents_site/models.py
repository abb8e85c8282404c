"""The site has no tables of its own. Django tells the end of `migrate` only to apps that have this module, and two parts of the
site wait for it: the roles of staff, and what keeps django-pghistory from writing contexts (see `apps.py`)."""
