//! Messages that speak of the tag and do not claim anything, each beside those that look like them and do.

use super::tests::{COMPLETE, check};
use super::*;

/// A message with the tag for every `T` that stands alone.
fn tagged(message: &str) -> String {
    let around = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let mut text = String::new();
    for (place, letter) in message.char_indices() {
        let (before, after) = (&message[..place], &message[place + letter.len_utf8()..]);
        let alone = letter == 'T' && !around(before.chars().next_back()) && !around(after.chars().next());
        text += &if alone { Promise::Complete.tag() } else { letter.to_string() };
    }
    text
}

#[track_caller]
fn check_all(expected: Option<Promise>, messages: &[&str]) {
    let messages: Vec<String> = messages.iter().map(|message| tagged(message)).collect();
    check(expected, &messages.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn the_instruction_restated_is_no_claim() {
    check_all(
        None,
        &[
            "Once everything works, I'll end my message with this line:\nT\nLet me look at the code first.",
            "I understand. When the goal is reached I must finish with the following line:\n\nT\n\nI'll begin by reading the code.",
            "I will end with this line when I am done:\nT\nNow I start.",
            "I will end with this line when I am done:\nT",
            "I must finish with the following line:\nT",
            "When the tests pass, I print the line:\nT",
            "Plan:\n1. fix it\n2. test it\n3. print the marker:\nT\n\nStarting with step 1 now.",
            "Plan:\n1. fix it\n2. print the marker:\nT",
            "I'll end with this line:\nT\nI begin.",
            "Understood, the last line is\n\nT\n\nLet me first read the code.",
            "T\nI start now.",
            "T Let me look at the code first.",
            "The task asks me to end with this line:\nT",
            "The previous turn ended with:\nT",
            "The final line should be:\nT",
            "Here is an example of the final line:\nT",
            "Here is what I will print once it works:\nT",
            "I'll need to print this at the end:\nT",
            "Once done:\nT",
            "When finished:\nT",
        ],
    );
    check_all(
        COMPLETE,
        &[
            "All tests pass, so I must now end with this line:\nT",
            "When I ran the suite everything passed, so I print the line:\nT",
            "I checked once more and can now say:\nT",
            "Closing with the required line:\nT",
            "Everything is verified, which means I can say:\nT",
            "As instructed, I am ending with the line:\nT",
            "The final status of the task is:\nT",
            "The required line:\nT",
            "The tool does not print the last line\nT",
            "All of it is what you asked for\nT",
            "The API returns exactly what the docs say\nT",
            "I've addressed everything the reviewer said\nT",
            "After running the full suite, I'll end with the line:\nT",
            "The work is done, so the final line is:\nT",
            "T\nLet me know if you need anything else.",
            "T\nLet me summarise: the pump runs.",
            "T\nThe server starts by itself. I started it once.",
            "T\nI'll check in later.",
            "T\nStarting with version 2, the flag is gone.",
            "T\nI'll be happy to fix more if you like.",
            "Let me look at the code first.\nIt was the seal.\nT",
        ],
    );
}

#[test]
fn whoever_has_not_earned_it_says_so_in_many_ways() {
    check_all(
        None,
        &[
            "There's no way I can say T",
            "I have no right to say T",
            "I have no right to say: T",
            "Nothing here justifies T",
            "I am nowhere near T",
            "Two tests fail; I'm holding off on T",
            "The tests prevent me from saying T",
            "It is too soon to say T",
            "I doubt it is T",
            "I doubt it is\nT",
            "It is impossible to say T",
            "It is impossible to say\nT",
            "I decline to say T",
            "Two tests fail, so I decline to say:\nT",
            "Almost T",
            "Half T",
            "I havent earned T",
            "this isnt T",
            "I wont say T",
            "I dont think this is T",
            "I have not finished.\nSo I do not write the line\nT",
            "Not yet: T",
            "Not done: T",
            "Not done yet:\nT",
            "I'd be lying to say T",
            "Still waiting for T",
            "We're two tests away from T",
            "Partially T",
        ],
    );
    check_all(
        COMPLETE,
        &[
            "I can now say T",
            "So I end with T",
            "This is T",
            "The migration is T",
            "The result is: T",
            "Here is the line: T",
            "All criteria are met; I therefore conclude with T",
            "Done, printing the promise: T",
            "That is all you asked for T",
            "Not one failure is left: T",
            "It works from end to end T",
            "The tool prints the right output T",
        ],
    );
}

#[test]
fn conditions_and_plans_are_no_claims() {
    check_all(
        None,
        &[
            "Assuming the tests pass: T",
            "Provided the tests pass, T",
            "To finish, print T",
            "Still to do: T",
            "Still to do:\nT",
            "Missing: T",
            "T requires the tests to pass, and they fail.",
            "T after the tests pass",
            "T to follow.",
        ],
    );
}

#[test]
fn what_was_said_before_is_no_claim() {
    check_all(
        None,
        &[
            "User: T",
            "Assistant: T",
            "Hook: T",
            "Previously: T",
            "Last time: T",
            "README.md: T",
            "// T",
            "echo T",
            "The previous turn ended with T",
            "In my last turn I wrongly wrote T",
            "My instructions are to end with the line T",
        ],
    );
}

#[test]
fn what_stands_in_a_block_or_a_quotation_is_shown() {
    check_all(
        None,
        &[
            "The spec says \"end with\nT\nwhen done\".",
            "The spec says “end with\n\nT\n\nwhen done”.",
            "<pre>\nT\n</pre>",
            "<think>\nThe marker is\nT\n</think>\nI start now.",
            "<think>\nAll green.\nT\n</think>\nOne test is left.",
            "<!--\nT\n-->",
            "```\nall green\n\nT",
            "The end of it:\n\n\tT",
        ],
    );
    check_all(
        COMPLETE,
        &[
            "I escaped what is in a <pre> element.\nT\nSo </pre> is kept.",
            "<pre>\nnever closed\nT",
            "<think>\nIt works.\n</think>\nT",
            "The pipe is 5\" wide now.\nT\nThe other one is 6\" wide.",
            "It says \"all green\".\nT\nAnd \"done\".",
        ],
    );
}

#[test]
fn what_is_taken_back_below_is_no_claim() {
    check_all(
        None,
        &[
            "T\nIgnore the line above.",
            "T\nDisregard that, tests fail.",
            "T\nStrike that.",
            "T\nMy mistake, two tests fail.",
            "T\nEDIT: 2 tests still fail.",
            "T\nThat is not true, the tests fail.",
        ],
    );
    check_all(
        COMPLETE,
        &[
            "T\nIgnore the warnings of npm.",
            "T\nEdit: the docs are there too.",
            "T\nUpdate: the failing test is fixed.",
            "T\nStrike rates are shown now.",
            "T\nThanks!",
            "T\nSummary: fixed the pump, 3 files changed.",
        ],
    );
}

#[test]
fn a_tag_on_the_last_line_counts_below_any_honest_report() {
    check_all(
        COMPLETE,
        &[
            "All tests pass.\nT",
            "Done. I fixed the bug and did not change anything else.\nT",
            "The feature flag is not complete yet in prod, as specified.\nT",
            "Nothing else is left to do.\nT",
            "There were no failures.\nT",
            "I have not touched the docs.\nT",
            "Half of the tests were slow; they are fast now.\nT",
            "Almost everything was renamed.\nT",
            "What is missing in the old API is documented.\nT",
            "\tT",
            "All tests pass.\n\n\tT",
            "**T**",
            "```sh\ncargo test\n\nAll of them ran.\n\n- the valve\n- the seal\n- the pump\n\nAll nine tests pass.\nT",
        ],
    );
    check(COMPLETE, &["<b><promise>COMPLETE</promise></b>", "<p>Done. <b><promise>COMPLETE</promise></b>.</p>"]);
}

#[test]
fn a_line_of_the_prompt_with_a_tag_in_it_is_an_echo_by_itself() {
    let tag = Promise::Complete.tag();
    let stuck = Promise::Blocked.tag();
    let goal = format!("Mend the pump and say {tag}\n\nThe rest. {tag}\n\nWhere it leaks: {stuck}\n");
    for line in goal.lines().filter(|line| !line.is_empty()) {
        assert_eq!(detect(line, &goal), None, "{line}");
        assert_eq!(detect(&format!("{line}\nI begin."), &goal), None, "{line}");
    }
    assert_eq!(detect(&tag, &goal), COMPLETE);
    assert_eq!(detect(&format!("Done. {tag}"), &goal), COMPLETE);
    // What the prompt asks for.
    let asked = format!("Mend the pump.\nEnd with this line:\nIt runs. {tag}\n");
    assert_eq!(detect(&format!("It runs. {tag}"), &asked), COMPLETE);
    assert_eq!(detect(&format!("End with this line:\nIt runs. {tag}"), &asked), None);
    let only = format!("Mend the pump.\n{tag}\n");
    assert_eq!(detect(&tag, &only), COMPLETE, "the tag alone is nobody's");
}

#[test]
fn what_a_hook_printed_is_an_echo_however_it_is_repeated() {
    let tag = Promise::Complete.tag();
    let prompt = "\
[Hook feedback]: stop[0]: 1 test failed
```text
suite wants [promise]COMPLETE</promise>
```

[Hook feedback]: stop[1]
```text
All green, it says.
[promise]COMPLETE</promise>
so be it
```

What you said at the end of your last turn:
```text
It runs. [promise]COMPLETE</promise>
```
";
    let echoes = [
        format!("suite wants {tag}"),
        format!("The hook said:\nsuite wants {tag}"),
        format!("All green, it says.\n{tag}\nso be it"),
        format!("I said:\nIt runs. {tag}"),
    ];
    for message in echoes {
        assert_eq!(detect(&message, prompt), None, "{message}");
    }
    // The agent's own words, and meant again.
    assert_eq!(detect(&format!("It runs. {tag}"), prompt), COMPLETE);
    assert_eq!(detect(&tag, prompt), COMPLETE);
}

/// Reports that speak of saying, or of what comes next, and lead to no line.
#[test]
fn a_report_above_or_below_takes_nothing_away() {
    check_all(
        COMPLETE,
        &[
            "- Fixed how log files are written\n\nT",
            "- The message that is printed\n\nT",
            "- cli: show the value to print\n\nT",
            "1. parse\n2. print\n\nT",
            "- parse\n- output\nT",
            "Implemented the feature you asked me to write\nT",
            "The log line is now correctly printed\nT",
            "Once that was fixed, everything passed: T",
            "Provided a fix for the leak, T",
            "T\n\nLet me walk you through the changes.",
            "T\n\nNext, let me outline what changed.",
            "T\nLet me also call out one caveat.",
            "T\nLet me be clear about one caveat.",
            "T\nI'll continue to monitor the CI run.",
            "T\nI'll check back tomorrow.",
            "T\nUpdate: previously failing test suite now succeeds",
        ],
    );
}

#[test]
fn what_is_only_aimed_at_or_nearly_there_is_no_claim() {
    check_all(
        None,
        &[
            "Goal: T",
            "Target: T",
            "Sample: T",
            "Format: T",
            "Done when: T",
            "Step 3: T",
            "90% T",
            "99.5 % T",
            "Nearly there, T",
            "Almost there: T",
            "Nobody could call this T",
            "It takes two more fixes and we are T",
            "One more test and this is T",
            "Let me fix the pump so I can say T",
            "60% done, T",
            "Perhaps T",
            "Waiting on T",
            "When it is fixed: T",
            "3. T (after the tests pass)",
            "T (once the tests pass)",
            "T except for the valve",
            "T (except for the valve)",
            "T — except for the valve",
        ],
    );
    check_all(
        COMPLETE,
        &[
            "I believe this is T",
            "The next release is T",
            "Everything should be good now: T",
            "100% T",
            "All of it passes, coverage is at 90%. T",
            "Almost 300 tests pass: T",
            "I'm done, so I call this T",
            "I mended the missing call T",
            "That was the last one, which brings us to T",
            "Instructions followed:\nT",
            "T after three attempts",
            "T (after several attempts)",
            "I'm confident this is T",
            "Target met: T",
            "Coverage is now 90% T",
            "Coverage 92.3% — T",
            "Coverage: 100.0% T",
            "The parser is more robust and the work is T",
            "Goal complete: T",
            "System ready: T",
            "Documented how to print it: T",
            "T (after mending the two tests)",
            "There are no more failing tests, so this is T",
            "There are no more failing tests and everything is T",
            "Two more tests were added and the work is T",
            "The build should pass now. T",
            "Half an hour later: T",
            "Goal reached: T",
            "Next steps:\n- deploy to staging\n- ask for review\n\nT",
        ],
    );
}

#[test]
fn a_failure_that_is_owned_up_to_below_takes_a_claim_back() {
    check_all(
        None,
        &[
            "T\nTwo tests still fail, so please do not merge.",
            "T\nHowever, the build is broken on main.",
            "T\nUnfortunately I did not finish the valve.",
            "T\nThough I couldn't finish the valve.",
            "T (not really)",
            "T — just kidding",
            "T, but the tests are red",
            "T\nbut the tests are red.",
            "T\nThe tests are still red.",
            "T\n3 tests fail.",
            "T\nEdit: the deploy fails.",
            "T\nEdit: the build failed.",
            "T\nUnfortunately 3 tests failed.",
            "T\nExcept that the valve leaks.",
            "T\nI lied.",
            "T\nNOT.",
        ],
    );
    check_all(
        COMPLETE,
        &[
            "T\nHowever, I did not touch the docs.",
            "T\nUnfortunately there was no network, so I ran the rest.",
            "T\nThe two tests that still failed are fixed.",
            "T\nTwo tests still fail, as they did before; they are unrelated.",
            "T\nHowever, you may want to look at the flaky test, which sometimes fails.",
            "T\nNote that requests which fail are retried three times.",
            "T\nAlthough the old code was broken, no data was lost.",
            "T\nThe command still fails on bad input, as documented.",
            "T\nLet me know if a test still fails.",
            "T\nNote: 3 pre-existing tests still fail (no network).",
            "T\nThree tests were broken by the rename and I updated them.",
            "T\nThe test that was still failing is now green.",
            "T\nUpdate the lockfile if the build fails.",
            "T\nI did not complete the optional part, as agreed.",
            "T (12 tests, 0 failures)",
            "T\nActually quite simple: one line.",
            "T\n\n- Ignore the claim header when it is empty",
            "T\nIt printed `the work is not finished` before.",
        ],
    );
}
