# Finds the outermost process of the scenario, which is the program under test. A supervisor between it and this process has no environment.
is_ours() { grep -aqsF "CRASH_RECORDER=$CRASH_RECORDER" "/proc/$1/environ"; }
find_windlass() {
    windlass= above=$PPID
    while [ "${above:-0}" -gt 1 ]; do
        if is_ours "$above"; then windlass=$above; fi
        above=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$above/status")
    done
    [ -n "$windlass" ]
}
