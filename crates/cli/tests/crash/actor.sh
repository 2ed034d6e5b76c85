# The hooks and the agent of the session scenario. Each program reports to the recorder, with one line per write:
#   TAG NAME ITERATION start | cut | prompt MARKER… | end said | end silent
# A marker is the tag of the hook that queued the feedback, with a + if the prompt says that the agent may have seen it.
name=${WINDLASS_HOOK:-agent}
record() { printf '%s\n' "$WINDLASS_TAG $name $WINDLASS_ITERATION $*" >>"$CRASH_RECORDER"; }
finish() { record end "$1"; exit "$2"; }
print_marker() { printf 'marker %s\n' "$WINDLASS_TAG"; }

# Returns whether a process is the program under test, and not the process that adopted this one after its death.
is_ours() { grep -aqF "CRASH_RECORDER=$CRASH_RECORDER" "/proc/$1/environ"; }
parent_of() {
    while read -r key value; do
        if [ "$key" = PPid: ]; then echo "$value"; fi
    done <"/proc/$1/status"
}
find_windlass() {
    supervisor=$PPID
    windlass=$(parent_of "$supervisor")
    is_ours "$windlass"
}

record start
if [ -n "$CRASH_EFFECT" ] && [ "$(grep -c ' start$' "$CRASH_RECORDER")" = "$CRASH_EFFECT" ] && find_windlass; then
    # A child and this process stay alive.
    tail -f /dev/null &
    if [ -n "$CRASH_SUPERVISOR" ]; then
        # The program must not observe the death of its supervisor.
        kill -STOP "$windlass"
        kill -9 $supervisor "$windlass"
    else
        kill -9 "$windlass"
    fi
    exec tail -f /dev/null
fi

if [ "$name" != agent ]; then
    read -r payload
    case $payload in '{'*'}') ;; *) record cut ;; esac
fi

case $name in
open | plan | review)
    print_marker
    finish said 0
    ;;
bill | close) finish silent 0 ;;
check)
    for step in step-1 step-2; do
        if [ ! -e "$step" ]; then
            echo "missing $step" >&2
            print_marker
            finish said 2
        fi
    done
    finish silent 0
    ;;
agent)
    # The prompt alone determines the work, so that a repeated turn has the same result.
    markers= seen= sent_back= last_word=
    while IFS= read -r line; do
        case $line in '[Hook feedback]: review'*) : >reviewed ;; esac
        case $line in
        '[Hook feedback]: '*' (you may have seen this before)') seen=+ ;;
        '[Hook feedback]: '*) seen= ;;
        'marker '*) markers="$markers ${line#marker }$seen" ;;
        'missing '*) : >"${line#missing }" && sent_back=yes ;;
        'The session is about to end.'*) last_word=yes ;;
        esac
    done
    record "prompt$markers"
    if [ "$CRASH_STOP:$sent_back:$last_word" = yes:yes: ] && find_windlass; then
        kill -TERM "$windlass"
        exec tail -f /dev/null
    fi
    echo "I did what I was told."
    if [ -e reviewed ]; then echo '<promise>COMPLETE</promise>'; fi
    finish silent 0
    ;;
esac
