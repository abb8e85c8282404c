"""Git over HTTP: `/{owner}/{repository}.git/...`, as stock git speaks it.

`callers` says who calls, `access` what they may do (a table, without I/O), `bodies` reads what they send, `ref_list` what a
push is about, `backend` runs Git's own CGI program, `fetching` and `pushing` are the two conversations.
"""
