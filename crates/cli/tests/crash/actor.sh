# The programs of the scenario: its hooks, and the agent. Each reports to the recorder, with one line per write:
#   TAG WHO ITERATION start | cut | prompt MARKER… | end said | end silent
# A marker is the tag of the hook that queued the feedback, with a + where the agent is told that it may have seen it.
who=${WINDLASS_HOOK:-agent}
tell() { printf '%s\n' "$WINDLASS_TAG $who $WINDLASS_ITERATION $*" >>"$CRASH_RECORDER"; }
finish() { tell end "$1"; exit "$2"; }
say() { printf 'marker %s\n' "$WINDLASS_TAG"; }

# Whether a process is the program under test, and not the one that has adopted us since that died.
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

tell start
if [ -n "$CRASH_EFFECT" ] && [ "$(grep -c ' start$' "$CRASH_RECORDER")" = "$CRASH_EFFECT" ] && find_windlass; then
    # The remaining processes live on: a child, and this one.
    tail -f /dev/null &
    if [ -n "$CRASH_SUPERVISOR" ]; then
        # It must not see its supervisor die.
        kill -STOP "$windlass"
        kill -9 $supervisor "$windlass"
    else
        kill -9 "$windlass"
    fi
    exec tail -f /dev/null
fi

if [ "$who" != agent ]; then
    read -r payload
    case $payload in '{'*'}') ;; *) tell cut ;; esac
fi

case $who in
open | plan | review)
    say
    finish said 0
    ;;
bill | close) finish silent 0 ;;
check)
    for step in step-1 step-2; do
        if [ ! -e "$step" ]; then
            echo "missing $step" >&2
            say
            finish said 2
        fi
    done
    finish silent 0
    ;;
agent)
    # Its work follows from its prompt alone, and can be repeated.
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
    tell "prompt$markers"
    if [ "$CRASH_STOP:$sent_back:$last_word" = yes:yes: ] && find_windlass; then
        kill -TERM "$windlass"
        exec tail -f /dev/null
    fi
    echo "I did what I was told."
    if [ -e reviewed ]; then echo '<promise>COMPLETE</promise>'; fi
    finish silent 0
    ;;
esac
