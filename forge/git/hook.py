"""The one hook: Git runs it when a push is unpacked and checked, just before refs move.

It says over an inherited pipe what is about to be done, with whether each update loses commits, and does what the server
answers over another: `ok`, or what to tell the client. If the server is gone, the pipe ends without an `ok`: refused.
A push that came by any other way has no such pipes and is refused too.
"""

from __future__ import annotations

PRE_RECEIVE = """\
#!/bin/sh
[ -n "${OA_UPDATES_FD:-}" ] && [ -n "${OA_VERDICT_FD:-}" ] || {
  echo "this repository takes pushes over HTTP only" >&2
  exit 1
}
{
  while read -r old new ref; do
    kind=update
    case $old in *[!0]*) ;; *) kind=create ;; esac
    case $new in *[!0]*) ;; *) kind=delete ;; esac
    if [ "$kind" = update ] && ! git merge-base --is-ancestor "$old" "$new" 2>/dev/null; then kind=rewrite; fi
    printf '%s %s %s %s\\n' "$kind" "$old" "$new" "$ref"
  done
  echo .
} > "/dev/fd/$OA_UPDATES_FD"
while IFS= read -r line; do
  case $line in
    ok) exit 0 ;;
    .) exit 1 ;;
    *) printf '%s\\n' "$line" >&2 ;;
  esac
done < "/dev/fd/$OA_VERDICT_FD"
exit 1
"""
