# The agent, the gate and the workflow steps of the journey. Each program reports to the recorder, with one line per write:
#   TAG NAME ITERATION start | prompt MARKER… | end said | end silent
# Markers are as in the session scenario. The agent completes the first task only after the gate has named the missing part. A workflow step gets its name as the first argument.
name=${1:-${WINDLASS_HOOK:-agent}}
record() { printf '%s\n' "$WINDLASS_TAG $name $WINDLASS_ITERATION $*" >>"$CRASH_RECORDER"; }

. "${CRASH_ACTOR%/*}/process_tree.sh"

record start
if [ "$(grep -c ' start$' "$CRASH_RECORDER")" = "$CRASH_EFFECT" ] && find_windlass; then
    # A child and this process stay alive.
    tail -f /dev/null &
    kill -9 "$windlass"
    exec tail -f /dev/null
fi

case $name in
agent)
    markers= seen= sent_back=
    while IFS= read -r line; do
        case $line in
        '[Hook feedback]: '*' (you may have seen this before)') seen=+ ;;
        '[Hook feedback]: '*) seen= ;;
        'marker '*) markers="$markers ${line#marker }$seen" ;;
        'missing '*) sent_back=yes ;;
        esac
    done
    record "prompt$markers"
    # The fail point is for the program under test, not for the commands of the agent.
    unset WINDLASS_FAILPOINT
    windlass note add --task "$WINDLASS_TASK_ID" "by $WINDLASS_TASK_ID" >/dev/null || exit 1
    printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"journey","version":"1"}}}' \
        '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"task_get\",\"arguments\":{\"taskId\":\"$WINDLASS_TASK_ID\"}}}" \
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"note_add\",\"arguments\":{\"taskId\":\"$WINDLASS_TASK_ID\",\"text\":\"through mcp\"}}}" |
        windlass mcp >answers || exit 1
    grep -q "by $WINDLASS_TASK_ID" answers && grep -q '"isError":false' answers || exit 1
    windlass events --json --type note_added | grep -q 'through mcp' || exit 1
    rm answers
    [ "$WINDLASS_TASK_ID:$sent_back" = T1: ] || echo "$WINDLASS_TASK_ID" >"part-$WINDLASS_TASK_ID"
    echo '<promise>COMPLETE</promise>'
    ;;
check)
    if [ ! -e "part-$WINDLASS_TASK_ID" ]; then
        printf 'missing part-%s\nmarker %s\n' "$WINDLASS_TASK_ID" "$WINDLASS_TAG" >&2
        record end said
        exit 2
    fi
    ;;
esac
record end silent
