"""What `bin/up` and `bin/test` run once everything is installed: the supervisor, the first run, and the checks.

Nothing in here imports Django, so that the supervisor stays small and starts before the database does.
"""
