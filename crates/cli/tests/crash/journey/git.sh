#!/bin/sh
# A wrapper of git that kills the program under test before or after the n-th call.
real=${0%/bin/git}/tools/git
[ -n "$CRASH_BEFORE_GIT$CRASH_AFTER_GIT" ] || exec "$real" "$@"
. "${0%/git}/process_tree.sh"
find_windlass || exec "$real" "$@"
echo . >>"$CRASH_RECORDER.git"
nth=$(grep -c . "$CRASH_RECORDER.git")
if [ "$nth" = "$CRASH_BEFORE_GIT" ]; then
    kill -9 "$windlass"
    exit 1
fi
[ "$nth" = "$CRASH_AFTER_GIT" ] || exec "$real" "$@"
"$real" "$@"
code=$?
kill -9 "$windlass"
exit $code
