"""Outbound webhooks: owners and staff are told what became of their boxes, runs, assignments, jobs, leaks and incidents.

What happened is a row that a trigger writes in the transaction of the change itself; what has to be told to whom is a row
that is due, and the worker drives it. See docs/reference/webhooks.md.
"""
