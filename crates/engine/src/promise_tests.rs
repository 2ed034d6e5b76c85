//! Final messages as agents write them, and what each of them claims.

use super::*;

/// A prompt as agents get it: a goal that names the tag, a quotation of the last turn, a hook's output, how to end.
const PROMPT: &str = "\
Mend the pump.
Print this line when it runs:
<promise>COMPLETE</promise>
That ends it.

What you said at the end of your last turn:
```text
Half of it is there.
[promise]COMPLETE</promise>
```

[Hook feedback]: stop[0]: 1 test failed
```text
test pump_runs ... FAILED
the gate wants to see
[promise]COMPLETE</promise>
before it opens
```

When the goal is reached and you have checked it, end your last message with this line, without the backticks:
`<promise>COMPLETE</promise>`
If you cannot go on without a person, say why and end it with `<promise>BLOCKED</promise>` instead.
";

#[track_caller]
pub(super) fn check(expected: Option<Promise>, messages: &[&str]) {
    for message in messages {
        assert_eq!(detect(message, PROMPT), expected, "{message}");
        let with_returns = message.replace('\n', "\r\n");
        assert_eq!(detect(&with_returns, PROMPT), expected, "with carriage returns: {message}");
        let coloured = format!("\x1b[1;32m{}\x1b[0m", message.replace('\n', "\x1b[0m\n\x1b[32m"));
        assert_eq!(detect(&coloured, PROMPT), expected, "in colour: {message}");
    }
}

pub(super) const COMPLETE: Option<Promise> = Some(Promise::Complete);

#[test]
fn real_claims_are_never_missed() {
    check(
        COMPLETE,
        &[
            "<promise>COMPLETE</promise>",
            "All green.\n<promise>COMPLETE</promise>",
            "All green.\n\n<promise>COMPLETE</promise>\n\n",
            "All green. <promise>complete</promise>",
            "All green.<promise>COMPLETE</promise>",
            "<Promise>Complete</Promise>",
            "<PROMISE>COMPLETE</PROMISE>",
            "<promise> COMPLETE </promise>",
            "<promise>\nCOMPLETE\n</promise>",
            "Done:\n  <promise>COMPLETE</promise>   ",
            "<promise>COMPLETE</promise> The pump runs.",
            "<promise>COMPLETE</promise> - all nine tests pass",
            "<promise>COMPLETE</promise>: the pump runs",
            "<promise>COMPLETE</promise>.",
            "<promise>COMPLETE</promise>!!",
            "I checked it twice, <promise>COMPLETE</promise>…",
            "**<promise>COMPLETE</promise>**",
            "***<promise>COMPLETE</promise>***.",
            "_<promise>COMPLETE</promise>_",
            "Everything passes. **<promise>COMPLETE</promise>**",
            "### <promise>COMPLETE</promise>",
            "- <promise>COMPLETE</promise>",
            "* **<promise>COMPLETE</promise>**",
            "1. Mended the valve\n2. Ran the tests\n3. <promise>COMPLETE</promise>",
            "- [x] <promise>COMPLETE</promise>",
            "✅ <promise>COMPLETE</promise> 🎉",
            "The pump runs 🎉 <promise>COMPLETE</promise> 🎉",
            "No more failures: <promise>COMPLETE</promise>",
            "It did not run before. It does now. <promise>COMPLETE</promise>",
            "I could not find any other leak.\n<promise>COMPLETE</promise>",
            "I could not find any other leak\n<promise>COMPLETE</promise>",
            "- The docs are not touched\n- No test fails\n\n<promise>COMPLETE</promise>",
            "The tests do not fail any more, <promise>COMPLETE</promise>",
            "The tests do not fail any more:\n<promise>COMPLETE</promise>",
            "The login should work now.\n\n<promise>COMPLETE</promise>",
            "The login should work now:\n<promise>COMPLETE</promise>",
            "Here is the line that you asked for:\n<promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise> - the tests do not fail any more",
            "<promise>COMPLETE</promise> no failures left",
            "No non-trivial case is left, <promise>COMPLETE</promise>",
            "Checked once more, all nine tests pass. <promise>COMPLETE</promise>",
            "```sh\ncargo test\n```\n<promise>COMPLETE</promise>",
            "~~~\ncargo test\n~~~\n<promise>COMPLETE</promise>",
            "I ran ```cargo test``` again.\n<promise>COMPLETE</promise>",
            "```cargo test``` is green.\n\n<promise>COMPLETE</promise>",
            "````md\n```\ncode\n```\n````\n<promise>COMPLETE</promise>",
            "```\nnever closed\n```sh\ncargo test\n```\n<promise>COMPLETE</promise>",
            "- Mended:\n    - the valve\n    - the seal\n\n<promise>COMPLETE</promise>",
            "- Mended the valve.\n\n  <promise>COMPLETE</promise>",
            "The valve was stuck, so I\n    <promise>COMPLETE</promise>",
            "> Mend the pump.\n\nIt runs.\n<promise>COMPLETE</promise>",
            "| test | ok |\n| --- | --- |\n| pump | yes |\n\n<promise>COMPLETE</promise>",
            "I will write `<promise>COMPLETE</promise>` when it works. It works:\n<promise>COMPLETE</promise>",
            "<promise>BLOCKED</promise>\n<promise>COMPLETE</promise>",
            "<promise>ESCALATE</promise>\n<promise>COMPLETE</promise>",
            // Taken back, mended, and said again.
            "<promise>COMPLETE</promise>\nWait, a test fails. Mended.\n<promise>COMPLETE</promise>",
            "Wait, that is wrong. Now it is right.\n<promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise>\nWait times are short now. No test waits any more.",
            "<promise>COMPLETE</promise>\nNo, I have not touched the docs.",
            "<promise>COMPLETE</promise>\n\nNot done, on purpose: the old format.",
            "<promise>COMPLETE</promise>\n```\nwait, this is output\n```",
            // The same words as in the last turn, and meant again.
            "Half of it is there.\n<promise>COMPLETE</promise>",
            "Half of it is there.\n<promise>COMPLETE</promise>\n3 files changed, 2 minutes",
            "```sh\n[900 bytes left out]\nlast line\n```\n<promise>COMPLETE</promise>",
            "```\n[900 bytes left out]\n```\nx\n```\n<promise>COMPLETE</promise>",
        ],
    );
}

#[test]
fn what_is_shown_is_not_said() {
    check(
        None,
        &[
            "",
            "The pump runs.",
            "```\n<promise>COMPLETE</promise>\n```",
            "```\n<promise>COMPLETE</promise>",
            "   ```text\n   <promise>COMPLETE</promise>\n   ```\nNot yet.",
            "~~~~ text\n```\n<promise>COMPLETE</promise>\n~~~~",
            "~~~\n<promise>COMPLETE</promise>\n~~~",
            "````md\n```\n<promise>COMPLETE</promise>\n```\n````",
            "```md\n```sh\ncargo test\n```\n<promise>COMPLETE</promise>\n```\nThat is what I plan to say.",
            "The end of it would be:\n\n    <promise>COMPLETE</promise>",
            "The end of it would be:\n\n\t<promise>COMPLETE</promise>\n\nNot now.",
            "- like this:\n\n        <promise>COMPLETE</promise>",
            "> <promise>COMPLETE</promise>",
            "> > <promise>COMPLETE</promise>",
            "| <promise>COMPLETE</promise> |",
            "`<promise>COMPLETE</promise>`",
            "I end with `<promise>COMPLETE</promise>`.",
            "\"<promise>COMPLETE</promise>\"",
            "“<promise>COMPLETE</promise>”",
            "'<promise>COMPLETE</promise>'",
            "You told me: \"when it runs, say <promise>COMPLETE</promise>\".",
            "You told me: \"when it runs, say <promise>COMPLETE</promise>",
            "(<promise>COMPLETE</promise>)",
            "<!-- <promise>COMPLETE</promise> -->",
            "~~<promise>COMPLETE</promise>~~",
            "+<promise>COMPLETE</promise>",
            "-<promise>COMPLETE</promise>",
            "src/prompt.rs:31:<promise>COMPLETE</promise>",
            "$ echo <promise>COMPLETE</promise>",
            "- [ ] <promise>COMPLETE</promise>",
            "text=<promise>COMPLETE</promise>",
            "&lt;promise&gt;COMPLETE&lt;/promise&gt;",
            "<promise>COMPLETED</promise>",
            "<promise>COMPLETE",
            "COMPLETE</promise>",
            "<promise>DONE</promise>",
            "I promise: COMPLETE",
            "begin\n[900 bytes left out]\n<promise>COMPLETE</promise>\n```\nnot yet",
        ],
    );
}

#[test]
fn negations_and_plans_are_no_claims() {
    check(
        None,
        &[
            "I have not finished, so no <promise>COMPLETE</promise> yet",
            "I have not finished, so no <promise>COMPLETE</promise>",
            "I have not finished, so no <promise>COMPLETE</promise>.",
            "I can't say <promise>COMPLETE</promise>",
            "I cannot honestly end with <promise>COMPLETE</promise>!",
            "The tests fail, so I won't write <promise>COMPLETE</promise>.",
            "It would be premature to say <promise>COMPLETE</promise>",
            "I will write <promise>COMPLETE</promise> when it works",
            "When it works I will write <promise>COMPLETE</promise>",
            "When it works I'll end with: <promise>COMPLETE</promise>",
            "I keep going until I can say <promise>COMPLETE</promise>",
            "Once the tests pass: <promise>COMPLETE</promise>",
            "If the tests pass, <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise> is what I will write when it works.",
            "<promise>COMPLETE</promise> comes later.",
            "<promise>COMPLETE</promise> - not yet",
            "<promise>COMPLETE</promise>? No, the seal leaks.",
            "<promise>COMPLETE</promise> cannot be said: the seal leaks.",
            "I cannot honestly say: <promise>COMPLETE</promise>",
            // A sentence that is broken over a line.
            "Not ready for\n<promise>COMPLETE</promise>",
            "The seal leaks, so I won't end with\n\n**<promise>COMPLETE</promise>**",
            "When it works I will say:\n<promise>COMPLETE</promise>",
        ],
    );
}

#[test]
fn negations_in_other_languages_are_no_claims() {
    check(
        None,
        &[
            "Das ist noch nicht <promise>COMPLETE</promise>",
            "Ich bin noch nicht bereit für <promise>COMPLETE</promise>.",
            "Also noch kein <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise> ist noch nicht möglich",
            "Ce n'est pas encore <promise>COMPLETE</promise>",
            "Je ne peux pas dire <promise>COMPLETE</promise>",
            "Todavía no <promise>COMPLETE</promise>",
            "No puedo decir <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise> todavía no",
            "Ainda não <promise>COMPLETE</promise>",
            "Ainda não posso dizer <promise>COMPLETE</promise>",
            "Ancora non <promise>COMPLETE</promise>",
            "Это ещё не <promise>COMPLETE</promise>",
            "Пока нельзя сказать <promise>COMPLETE</promise>",
            "还没有 <promise>COMPLETE</promise>",
            "现在还不能说 <promise>COMPLETE</promise>",
            "尚未 <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise> 还不能说",
            "まだ <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise> ではありません",
        ],
    );
    check(
        COMPLETE,
        &[
            "Die Tests schlagen nicht mehr fehl. <promise>COMPLETE</promise>",
            "Die Tests schlagen nicht mehr fehl, <promise>COMPLETE</promise>",
            "Kein Test schlägt mehr fehl\n<promise>COMPLETE</promise>",
            "Les tests ne cassent pas : <promise>COMPLETE</promise>",
            "Ningún test falla: <promise>COMPLETE</promise>",
            "Nenhum teste falha mais agora. <promise>COMPLETE</promise>",
            "Тесты не падают, <promise>COMPLETE</promise>",
            "测试没有失败 <promise>COMPLETE</promise>",
            "没有问题了。<promise>COMPLETE</promise>",
            "テストに問題はありません。 <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise> 問題はありません",
        ],
    );
}

#[test]
fn what_is_taken_back_is_no_claim() {
    check(
        None,
        &[
            "<promise>COMPLETE</promise>\nWait, I was wrong",
            "<promise>COMPLETE</promise>\n\nWait — the seal leaks.",
            "<promise>COMPLETE</promise>\nWait. The seal leaks.",
            "<promise>COMPLETE</promise> Wait, the seal leaks.",
            "<promise>COMPLETE</promise>. No, wait.",
            "<promise>COMPLETE</promise>\nNo, wait, the seal leaks.",
            "<promise>COMPLETE</promise>\n**Actually**, one test fails.",
            "<promise>COMPLETE</promise>\nHold on, one test fails.",
            "<promise>COMPLETE</promise>\nI looked again. I spoke too soon.",
            "All green.\n<promise>COMPLETE</promise>\nScratch that.",
        ],
    );
    check(
        Some(Promise::Blocked),
        &[
            "<promise>COMPLETE</promise>\n<promise>BLOCKED</promise>",
            "<promise>COMPLETE</promise>\nBut there is no key.\n<promise>BLOCKED</promise>",
            "<promise>COMPLETE</promise> <promise>BLOCKED</promise>",
        ],
    );
    check(Some(Promise::Escalate), &["<promise>COMPLETE</promise>\n<promise>ESCALATE</promise>"]);
}

/// How agents end their reports.
#[test]
fn a_claim_counts_below_any_report() {
    check(
        COMPLETE,
        &[
            "## Summary\n\n- ✅ Fixed login redirect\n- ✅ Added 3 tests\n\nAll tests pass (42 passed, 0 failed).\n\n<promise>COMPLETE</promise>",
            "I've fixed the bug. The root cause was that `parse()` did not handle empty input. I added a check and a regression test.\n\n---\n\n<promise>COMPLETE</promise>",
            "Everything is in place, there's nothing left to do. <promise>COMPLETE</promise>",
            "All tests pass and there are no warnings <promise>COMPLETE</promise>",
            "The build no longer fails and CI is green. <promise>COMPLETE</promise>",
            "> **Note**: the deprecated API is untouched.\n\n<promise>COMPLETE</promise>",
            "Task is done 🎉🎉 <promise>COMPLETE</promise>",
            "✅ All done! <promise>COMPLETE</promise>",
            "**Status:** <promise>COMPLETE</promise>",
            "Status: <promise>COMPLETE</promise>",
            "## Status: <promise>COMPLETE</promise>",
            "Final answer: <promise>COMPLETE</promise>",
            "=> <promise>COMPLETE</promise>",
            "→ <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise>\n\n_Generated with care_",
            "<promise>COMPLETE</promise>\n\n---\nFiles changed:\n- src/login.rs\n- tests/login.rs",
            "<promise>COMPLETE</promise>\n\nLet me know if you would like me to refactor further.",
            "<promise>COMPLETE</promise>\n\nIf you want, I can also add docs.",
            "The verification passed:\n\n```\ntest result: ok. 12 passed; 0 failed\n```\n\n<promise>COMPLETE</promise>",
            "| File | Change |\n|---|---|\n| a.rs | fixed |\n\nEverything verified.\n\n<promise>COMPLETE</promise>",
            "I checked that the server doesn't crash anymore and everything works as it should.\n\n<promise>COMPLETE</promise>",
            "1. Reproduced the failure\n2. Wrote a failing test\n3. Fixed it\n4. Ran the whole suite: 213 passed\n\n<promise>COMPLETE</promise>\n",
            "The only thing I did not do is touch `vendor/`, as instructed — <promise>COMPLETE</promise>",
            "Nothing else needs to be done. Marking this as complete:\n\n**<promise>COMPLETE</promise>**",
            "I have verified the fix. The goal is reached, so I end with the line:\n<promise>COMPLETE</promise>",
            "I have verified that the goal is reached, so as you asked I'll end with:\n\n<promise>COMPLETE</promise>",
            "All requirements are satisfied. I'll now mark the task as complete.\n\n<promise>COMPLETE</promise>",
            "I will now output the completion marker:\n\n<promise>COMPLETE</promise>",
            "The login must now redirect to /home; verified by hand.\n<promise>COMPLETE</promise>",
            "Tests run once and pass. Actually fixed the root cause instead of the symptom.\n\n<promise>COMPLETE</promise>",
            "Users without an account are now redirected. <promise>COMPLETE</promise>",
            "Users without an account are now redirected <promise>COMPLETE</promise>",
            "The CLI now works without network access <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise> 🚀",
            "🎯 **Goal reached** — <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise>\n\nNote: I did not push. You will have to do that.",
            "<promise>COMPLETE</promise>\n\nActually running the migration in production is left to you.",
            "<promise>COMPLETE</promise>\n\nCorrection of the typo in README included.",
            "All 9 tests pass; lint is clean; docs are updated; <promise>COMPLETE</promise>",
            "I also double-checked for regressions; none. <promise>COMPLETE</promise>",
            "- Implementation: done\n- Tests: done\n- <promise>COMPLETE</promise>",
            "Done! (no tests were harmed) <promise>COMPLETE</promise>",
            "I fixed it. \"It works\" now. <promise>COMPLETE</promise>",
            "It's all good and the user's config isn't touched. <promise>COMPLETE</promise>",
            "Previously blocked, but the key arrived and it's all working.\n<promise>COMPLETE</promise>",
            "⏺ All tests pass.\n\n⏺ <promise>COMPLETE</promise>",
            "● <promise>COMPLETE</promise>",
            "[x] <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise>\n\nNext steps: once merged, delete the branch.",
            "Everything that was asked for is finished and nothing is missing.\n\nHere is the required marker - <promise>COMPLETE</promise>",
            "The tests failed at first and then passed <promise>COMPLETE</promise>",
            "It is faster than before <promise>COMPLETE</promise>",
            "I did everything you asked <promise>COMPLETE</promise>",
            "After running the full suite, all 42 tests pass <promise>COMPLETE</promise>",
            "When I ran the suite, everything passed <promise>COMPLETE</promise>",
            "Next I ran the linter: clean. <promise>COMPLETE</promise>",
            "Output:\n<promise>COMPLETE</promise>",
            "Output: <promise>COMPLETE</promise>",
            "<promise>COMPLETE</promise>\n\nThe old exporter is not ready for Windows, as before.",
            "Nothing left to do: <promise>COMPLETE</promise>",
            "Nothing remaining: <promise>COMPLETE</promise>",
            "Lint and format: <promise>COMPLETE</promise>",
            "Next I ran the linter, and it is clean: <promise>COMPLETE</promise>",
            "Therefore, <promise>COMPLETE</promise>",
            "Since all checks passed: <promise>COMPLETE</promise>",
            "Now that nothing is failing anymore, I can say <promise>COMPLETE</promise>",
        ],
    );
}

#[test]
fn whoever_speaks_of_the_end_is_not_there() {
    check(
        None,
        &[
            "I've made good progress but 2 tests still fail. I'll continue next turn, so I'm holding off on <promise>COMPLETE</promise>.",
            "Still failing. No <promise>COMPLETE</promise> this time.",
            "Remaining work:\n- fix the seal\n- then <promise>COMPLETE</promise>",
            "Next: fix tests, then emit <promise>COMPLETE</promise>",
            "My plan:\n1. Fix the parser\n2. Run the tests\n3. Output <promise>COMPLETE</promise>",
            "After that I can output <promise>COMPLETE</promise>",
            "As soon as CI is green I output <promise>COMPLETE</promise>",
            "When everything passes, output <promise>COMPLETE</promise>",
            "The instructions say to end with <promise>COMPLETE</promise>",
            "I was told to print <promise>COMPLETE</promise>",
            "I'm far from <promise>COMPLETE</promise>",
            "Too early for <promise>COMPLETE</promise>",
            "I refuse to output <promise>COMPLETE</promise>",
            "I am going to say <promise>COMPLETE</promise> after the last test is green",
            "<promise>COMPLETE</promise> would be a lie at this point.",
            "<promise>COMPLETE</promise> would be wrong.",
            "<promise>COMPLETE</promise> has to wait until tests pass.",
            "<promise>COMPLETE</promise> isn't justified yet.",
            "<promise>COMPLETE</promise> (not yet)",
            "<promise>COMPLETE</promise> — not yet, two tests fail",
            "<promise>COMPLETE</promise>\n\nHmm, wait. One test is red.",
            "<promise>COMPLETE</promise>\n\nSorry, that was premature. Two tests fail.",
            "<promise>COMPLETE</promise>\n\nOn reflection this is not complete.",
            "<promise>COMPLETE</promise>\n\nEdit: the tests fail, so this is not done.",
            "<promise>COMPLETE</promise>\n\nI retract that: the lint fails.",
            "I need to avoid claiming <promise>COMPLETE</promise>",
            "Let me keep going before saying <promise>COMPLETE</promise>",
            "The goal is not reached, hence no <promise>COMPLETE</promise> from me.",
            "**Remaining:** <promise>COMPLETE</promise>",
            "Expected output: <promise>COMPLETE</promise>",
            "e.g. <promise>COMPLETE</promise>",
            "[ ] <promise>COMPLETE</promise>",
            "- ☐ <promise>COMPLETE</promise>",
            "- ❌ <promise>COMPLETE</promise>",
            "❌ <promise>COMPLETE</promise>",
            "⏳ <promise>COMPLETE</promise>",
            "Status: NOT <promise>COMPLETE</promise>",
            "Not <promise>COMPLETE</promise> — 3 failures remain",
        ],
    );
}

#[test]
fn echoes_and_replays_are_no_claims() {
    check(
        None,
        &[
            // Of the prompt, as it is, and as something that renders Markdown would print it.
            "You said:\nMend the pump.\nPrint this line when it runs:\n<promise>COMPLETE</promise>\nI have not begun.",
            "The line is\n<promise>COMPLETE</promise>\nThat ends it.\nLet me begin.",
            "When the goal is reached and you have checked it, end your last message with this line, without the \
             backticks:\n<promise>COMPLETE</promise>\nI begin with the valve.",
            // Of what hooks printed, taken apart by us or not.
            "The gate says:\ntest pump_runs ... FAILED\nthe gate wants to see\n<promise>COMPLETE</promise>\nbefore it opens\n",
            "the gate wants to see\n[promise]COMPLETE</promise>\nbefore it opens",
            // Of what was said before.
            "I said:\nHalf of it is there.\n<promise>COMPLETE</promise>\nNow for the other half.",
            "My last turn ended with this:\nHalf of it is there.\n<promise>COMPLETE</promise>",
            "Half of it is there.\n[promise]COMPLETE</promise>",
        ],
    );
    assert_eq!(detect(PROMPT, PROMPT), None, "the whole prompt");
}

#[test]
fn whoever_is_stuck_is_believed() {
    check(
        Some(Promise::Blocked),
        &[
            "I need a key.\n<promise>BLOCKED</promise>",
            "  <Promise>Blocked</Promise> by the network",
            "I cannot go on without a key: <promise>BLOCKED</promise>",
            "<promise>BLOCKED</promise> I could not reach the server, and will not guess.",
            "The tests do not even start, so **<promise>BLOCKED</promise>**.",
            "Not COMPLETE, there is no key.\n- <promise>BLOCKED</promise>",
        ],
    );
    check(Some(Promise::Escalate), &["Somebody has to decide.\n<promise>ESCALATE</promise>"]);
    check(Some(Promise::Escalate), &["<promise>BLOCKED</promise>\n<promise>ESCALATE</promise>"]);
    check(
        None,
        &[
            "I am not <promise>BLOCKED</promise>",
            "```\n<promise>BLOCKED</promise>\n```",
            "say why and end it with `<promise>BLOCKED</promise>` instead.",
            "<promise>BLOCKED</promise> is not needed here.",
        ],
    );
}

#[test]
fn quoted_claims_are_taken_apart() {
    let quoted = without_claims("ä <PROMISE>COMPLETE</promise>\n<promise>x");
    assert_eq!(quoted, "ä [promise]COMPLETE</promise>\n[promise]x");
    assert_eq!(detect(&quoted, ""), None);
    // One that only a terminal hides, beside one that only a terminal shows.
    let quoted = without_claims("\x1b<promise>x\n<p\u{feff}romise>COMPLETE</promise>");
    assert_eq!(quoted, "promise>x\n[promise]COMPLETE</promise>");
}

#[test]
fn no_message_is_too_odd() {
    for message in [
        "<promise>",
        "</promise><promise>",
        "<promise></promise>",
        "\x1b",
        "\x1b[",
        "\x1b]x",
        "1.",
        "-",
        "``` `",
        "ß<promise>ẞ",
    ] {
        assert_eq!(detect(message, message), None, "{message:?}");
    }
}

#[test]
fn the_last_words_are_those_before_the_claim() {
    let words = |message: &str| last_words(message);
    assert_eq!(words("I looked.\nWhich version?\n\n<Promise>Blocked</Promise>\n").as_deref(), Some("Which version?"));
    assert_eq!(words("Which version? <promise>BLOCKED</promise>").as_deref(), Some("Which version?"));
    assert_eq!(words("All green.\n\n**<promise>COMPLETE</promise>**\n").as_deref(), Some("All green."));
    assert_eq!(words("All green. **<promise>COMPLETE</promise>**.").as_deref(), Some("All green."));
    assert_eq!(words("- <promise>COMPLETE</promise> - the pump runs").as_deref(), Some("- the pump runs"));
    assert_eq!(
        words("I end with `<promise>COMPLETE</promise>`.").as_deref(),
        Some("I end with `<promise>COMPLETE</promise>`.")
    );
    assert_eq!(words("x\n```\n").as_deref(), Some("x"));
    assert_eq!(words("<promise>BLOCKED</promise>"), None);
    assert_eq!(words("### <promise>BLOCKED</promise>"), None);
    assert_eq!(words(&"é".repeat(200)).map(|words| words.len()), Some(300));
}

/// Neither the stack nor the time that it takes grows with the square of it.
#[test]
fn a_flood_of_promises_is_read_to_its_end() {
    let lines = "<promise>COMPLETE</promise>\n".repeat(38_000);
    assert_eq!(detect(&lines, ""), Some(Promise::Complete));
    detect(&"<promise>COMPLETE</promise> 1. ".repeat(38_000), "");
}

/// However long a message is, reading it takes time in proportion: whoever writes it wants something else.
#[test]
fn long_messages_are_read_in_time() {
    let many = "<promise>COMPLETE</promise>\n".repeat(MESSAGE / 28);
    let quoted = format!("I said:\n{}", "[promise]COMPLETE</promise>\n".repeat(4));
    assert_eq!(detect(&many, &quoted), COMPLETE);
    let line = format!("{} <promise>COMPLETE</promise>\n", "for: ".repeat(LINE / 5 - 10));
    assert_eq!(detect(&line.repeat(MESSAGE / LINE), PROMPT), detect(&line, PROMPT));
}
