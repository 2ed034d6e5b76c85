//! Messages of real agents about rate limits and denied access.

use std::time::Duration;

use jiff::Timestamp;

use super::*;

fn now() -> Timestamp {
    "2026-01-17T10:00:00Z".parse().expect("a moment")
}

/// Summarizes a classification.
fn read(trouble: Option<AgentFailure>) -> String {
    match trouble {
        None => "nothing".to_owned(),
        Some(AgentFailure::AccessDenied { paid: true, .. }) => "locked".to_owned(),
        Some(AgentFailure::AccessDenied { paid: false, .. }) => "unpaid".to_owned(),
        Some(AgentFailure::RootRefused { .. }) => "root".to_owned(),
        Some(AgentFailure::Failed { fault, .. }) => format!("{fault:?}"),
        Some(AgentFailure::RateLimited { reset: None, .. }) => "limited".to_owned(),
        Some(AgentFailure::RateLimited { reset: Some(reset), .. }) => {
            format!("limited until {}", reset.resolve_moment(now()))
        }
    }
}

#[track_caller]
fn check(stderr: &str, expected: &str) {
    assert_eq!(
        read(classify_failed_output("I was about to mend the pump.\n", stderr)),
        expected,
        "on stderr: {stderr}"
    );
    assert_eq!(read(classify_failed_output(stderr, "")), expected, "on stdout: {stderr}");
}

#[test]
fn rate_limit_messages_yield_their_reset_times() {
    let table = [
        ("Claude AI usage limit reached|1768651200", "limited until 2026-01-17T12:00:00Z"),
        ("You've hit your limit · resets 3pm (UTC)", "limited until 2026-01-17T15:00:00Z"),
        ("You've hit your session limit · resets 10:30pm (Europe/Berlin)", "limited until 2026-01-17T21:30:00Z"),
        ("5-hour limit reached ∙ resets 9am (UTC)", "limited until 2026-01-18T09:00:00Z"),
        ("Weekly limit reached ∙ resets Jan 20, 3pm (UTC)", "limited until 2026-01-20T15:00:00Z"),
        (
            "You've hit your usage limit. Upgrade to Pro or try again in 3 hours 12 minutes.",
            "limited until 2026-01-17T13:12:00Z",
        ),
        ("ERROR: You've hit your usage limit. Try again at 5:30 PM (UTC).", "limited until 2026-01-17T17:30:00Z"),
        ("Rate limit reached for gpt-5 in organization o on tokens per min (TPM). Please try again in 1.5s.", {
            "limited until 2026-01-17T10:00:01.5Z"
        }),
        ("Rate limit reached. Please try again in 450ms.", "limited until 2026-01-17T10:00:00.45Z"),
        ("RESOURCE_EXHAUSTED: Quota exceeded for quota metric. Please retry in 34s.", {
            "limited until 2026-01-17T10:00:34Z"
        }),
        ("Quota exceeded. Your quota will reset after 1h30m10s.", "limited until 2026-01-17T11:30:10Z"),
        ("HTTP 429: {\"error\":{\"message\":\"slow down\"},\"retry_after\": 20}", "limited until 2026-01-17T10:00:20Z"),
        ("429 Too Many Requests\nretry-after: 90\n", "limited until 2026-01-17T10:01:30Z"),
        ("rate limited until 2026-01-17T12:30:00Z", "limited until 2026-01-17T12:30:00Z"),
        ("stream error: exceeded retry limit, last status: 429 Too Many Requests", "limited"),
        ("API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}", "limited"),
        ("API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}", "limited"),
        ("litellm.RateLimitError: RateLimitError: OpenAIException", "limited"),
        // Waits are bounded, and a reset in the past means no wait.
        ("rate limit: try again in 99999 hours", "limited until 2026-01-24T10:00:00Z"),
        ("rate limit: try again in 99999999999999999999999 days", "limited"),
        ("Claude AI usage limit reached|1000000000", "limited until 2026-01-17T10:00:00Z"),
        ("rate limit, resets 25:99", "limited"),
    ];
    for (said, expected) in table {
        check(said, expected);
    }
}

#[test]
fn access_denied_messages_are_recognised() {
    let locked = [
        "Invalid API key · Please run /login",
        "API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}",
        "OAuth token has expired. Please obtain a new token or refresh your existing token.",
        "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header",
        "Not logged in. Please run codex login.",
        "Your access token could not be refreshed. Please log out and sign in again.",
        "Incorrect API key provided: sk-x. You can find your API key at …",
        "Please set an Auth method in your settings.json or specify GEMINI_API_KEY",
        "API key not valid. Please pass a valid API key.",
        "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.",
        "Error: No authentication information found.",
        "litellm.AuthenticationError: AuthenticationError: OpenAIException",
        "error: OPENAI_API_KEY is not set",
    ];
    for said in locked {
        check(said, "locked");
    }
    check("Credit balance is too low", "unpaid");
    check("429 You exceeded your current quota, please check your plan and billing details.", "unpaid");
    let claude = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons";
    check(claude, "root");
    let end = classify_failed_output("", claude).expect("it is known").into_turn_end("claude");
    let TurnEnd::Broken(why) = end else { panic!("{end:?}") };
    assert!(why.starts_with(claude) && why.contains("`IS_SANDBOX: \"1\"` under `env`"), "{why}");
}

#[test]
fn quota_is_a_limit_only_when_its_own_line_says_when_it_ends() {
    let quota = "Error: 429 insufficient_quota: check your plan and billing details.";
    check(&format!("{quota} Please retry in 600s."), "limited until 2026-01-17T10:10:00Z");
    // The delay of the agent's own retries, around its last attempt.
    check(&format!("{quota}\nRetrying in 4s"), "unpaid");
    check(&format!("Request failed. Retrying in 4s\n{quota}"), "unpaid");
    // Gemini CLI names the metric on the next line, which reports a limit by itself.
    check(
        "You exceeded your current quota, please check your plan and billing details.\n\
         * Quota exceeded for metric: input_token_count, limit: 1000000\nPlease retry in 600s.",
        "limited until 2026-01-17T10:10:00Z",
    );
}

#[test]
fn outage_messages_are_recognised() {
    for said in [
        "API Error: 500 {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}",
        "the agent failed: Internal error: {\"details\":\"500 The server had an error.\"} (error -32603)",
        "{\"error\":{\"code\":503,\"message\":\"The model is not there.\",\"status\":\"UNAVAILABLE\"}} (error 503)",
        "Server error (500 Internal Server Error) at URL: http://x",
        "502 Bad Gateway",
        "TypeError: fetch failed",
        "connect ECONNREFUSED 127.0.0.1:9",
        "We’re currently experiencing high demand, which may cause temporary errors.",
        "stream disconnected before completion: error sending request for url (http://x)",
    ] {
        check(said, "Outage");
    }
}

#[test]
fn token_limits_empty_answers_and_refusals_are_recognised() {
    check("API Error: Claude's response exceeded the 128000 output token maximum. To configure this, …", "OutOfTokens");
    check("This model's maximum context length is 8192 tokens.", "OutOfTokens");
    check("Internal error: {\"details\":\"Model stream ended with empty response text.\"}", "Empty");
    check("ContentFilterError: the answer was held back", "Refused");
}

#[test]
fn unknown_failures_are_not_classified() {
    for said in [
        "no route to host",
        "exit 1",
        "panicked at src/main.rs:429:12",
        "thread 'main' overflowed its stack",
        "fatal: Authentication of the log was skipped",
        "error: 3 tests failed",
        "error: 500 tests failed",
        "I refused the connection to port 500",
    ] {
        check(said, "nothing");
    }
    // Only the last lines report a failure; earlier text is about the work.
    let work = "I added a test for 429 Too Many Requests\nand for 401 Unauthorized\n";
    let more = "and mended it\n".repeat(20);
    assert_eq!(
        read(classify_failed_output(&format!("{work}{more}"), &format!("{work}{more}no route to host"))),
        "nothing"
    );
}

#[test]
fn answer_with_only_a_rate_limit_is_a_failure() {
    let instead = |text: &str| read(classify_failure_answer(text));
    for (said, expected) in [
        ("Error: 429 rate limit exceeded, retry-after: 1", "limited until 2026-01-17T10:00:01Z"),
        ("429 Too Many Requests: rate limit exceeded, retry-after: 1", "limited until 2026-01-17T10:00:01Z"),
        ("429 Too Many Requests\nretry-after: 90\n", "limited until 2026-01-17T10:01:30Z"),
        ("rate limit exceeded. try again in 1 seconds", "limited until 2026-01-17T10:00:01Z"),
        ("Rate limit reached for gpt-5 in organization o on tokens per min (TPM). Please try again in 1.5s.", {
            "limited until 2026-01-17T10:00:01.5Z"
        }),
        (
            "Rate limit reached for gpt-5 in organization o on tokens per min (TPM): Limit 30000, Used 28,000, \
             Requested 4000. Please try again in 4s. Visit https://example.com/account/rate-limits to learn more.",
            "limited until 2026-01-17T10:00:04Z",
        ),
        ("Too many requests, please wait 2 minutes.", "limited until 2026-01-17T10:02:00Z"),
        ("API Error: Rate limit reached", "limited"),
        ("ERROR: rate_limit_exceeded", "limited"),
        ("[API Error: Rate limit reached for requests. Please try again later.]", "limited"),
        ("HTTP 429: Too Many Requests", "limited"),
        ("Error: quota exceeded.", "limited"),
    ] {
        assert_eq!(instead(said), expected, "{said}");
    }
}

/// Recorded of Copilot CLI 1.0.102 over the Agent Client Protocol, as its whole message before `end_turn`: the provider
/// answers every request with 429 in OpenAI's words, first of a rate, then of a quota, then in those of `testkit::provider`.
#[test]
fn copilot_rate_limit_over_acp_is_told_from_a_used_up_quota() {
    for (said, expected) in [
        (
            "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 54.32 seconds) Last \
             error: 429 Rate limit reached for stub in organization org-x on requests per min (RPM): Limit 3, Used 3, \
             Requested 1. Please try again in 20s. Visit https://platform.openai.com/account/rate-limits to learn more.",
            "limited until 2026-01-17T10:00:20Z",
        ),
        (
            "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 53.42 seconds) Last \
             error: 429 You exceeded your current quota, please check your plan and billing details. For more \
             information on this error, read the docs: \
             https://platform.openai.com/docs/guides/error-codes/api-errors.",
            "unpaid",
        ),
        (
            "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 60.61 seconds) Last \
             error: 429 Rate limit reached for requests. Please try again later.",
            "limited",
        ),
    ] {
        assert_eq!(read(classify_failure_answer(said)), expected, "{said}");
    }
    // Not recorded: written from the description of a limit that Copilot does not retry.
    let described = "Error: 429 Rate limit reached for stub in organization org-x on requests per min (RPM): Limit 3, \
                     Used 3, Requested 1. Please try again in 20s.";
    assert_eq!(read(classify_failure_answer(described)), "limited until 2026-01-17T10:00:20Z");
}

#[test]
fn failure_answers_are_told_from_real_answers() {
    let instead = |text: &str| read(classify_failure_answer(text));
    assert_eq!(instead("Claude AI usage limit reached|1768651200\n"), "limited until 2026-01-17T12:00:00Z");
    assert_eq!(instead("API Error: 401 authentication_error · Please run /login"), "locked");
    assert_eq!(instead("You've hit your limit · resets 3pm (UTC)"), "limited until 2026-01-17T15:00:00Z");
    let own = |error: &str| instead(&format!("Ran into this error: {error}\n\nPlease retry if you think this is so."));
    assert_eq!(own("Rate limit exceeded: slow down."), "limited");
    assert_eq!(own("Server error: Server error (500 Internal Server Error) at URL: http://x"), "Outage");
    assert_eq!(own("Out of cheese."), "Failed");
    let warned = |text: &str| instead(&format!("Warning: no metadata.\n\nConfig warning: no box.\n\n{text}\n\n"));
    assert_eq!(warned("We’re currently experiencing high demand, which may cause temporary errors."), "Outage");
    assert_eq!(
        warned("stream disconnected before completion: Incomplete response returned, reason: content_filter"),
        { "Refused" }
    );
    assert_eq!(warned("Incomplete response returned, reason: max_output_tokens"), "OutOfTokens");
    assert_eq!(instead("The model returned an empty response. Please resend your message to continue."), "Empty");
    assert_eq!(warned("I have mended it."), "nothing");
    let copilot = |text: &str| {
        instead(&format!("{}Error: {text}", "Info: Request failed due to a transient API error. Retrying...".repeat(5)))
    };
    assert_eq!(
        copilot(
            "Authentication failed with provider at http://x/v1 (HTTP 401).\n  Check your COPILOT_PROVIDER_API_KEY."
        ),
        "locked"
    );
    let gone =
        "Failed to get response from the AI model; retried 5 times (total retry wait time: 10.6 seconds) Last error:";
    assert_eq!(copilot(&format!("{gone} 429 Rate limit reached for requests. Please try again later.")), "limited");
    assert_eq!(copilot(&format!("{gone} 500 The server had an error while processing your request.")), "Outage");
    assert_eq!(copilot(&format!("{gone} the cat ran off")), "Failed");
    assert_eq!(copilot("No response was returned. Send your message again to retry."), "Empty");
    let resumed =
        "Warning: 1 tool call(s) had no recorded result at resume. Verify the current state before continuing.";
    assert_eq!(strip_leading_warnings(&format!("{resumed}All of it.\n\nYes.")), "All of it.\n\nYes.");
    assert_eq!(strip_leading_warnings(resumed), "");
    for text in [
        "",
        "Warning: ",
        "All nine tests pass.",
        "I mended the handling of 429 Too Many Requests.\n<promise>COMPLETE</promise>",
        "The rate limit is now read from the header.",
        "Rate limit exceeded is now handled; retry-after: 90 is sent.",
        "Rate limit exceeded: handled. Too many requests: handled.",
        "Error: rate limit exceeded. That is what the server says now.",
        "API Error: Rate limit reached is shown to whoever asks too often.",
        "Too many requests no longer crash it.",
        "429 Too Many Requests is now retried after 1 second.",
        "Retry after rate limit exceeded.",
        "Rate limit, retry-after: 1",
        "429",
        "Try again in 5 seconds.",
        "Error: rate limit exceeded\n<promise>COMPLETE</promise>",
        "Please run /login to see the new page.",
        "Info: Retrying... is now told with its time.",
        "Error: No response was returned is what it said before; now it tries again.",
        "Error: 429 handling done. Users that are not logged in get 401.",
        "Login works: 401 Unauthorized is gone.",
    ] {
        assert_eq!(instead(text), "nothing", "{text}");
    }
    let long = format!("API Error: 429\n{}", "but then I went on and mended it.\n".repeat(20));
    assert_eq!(instead(&long), "nothing");
}

/// Over ACP these are ordinary messages, and their turns end with `end_turn`.
#[test]
fn acp_messages_about_failed_turns_are_failures() {
    let instead = |text: &str| read(classify_failure_answer(text));
    let goose =
        "Network error: Stream decode error: error decoding response body\n\nPlease resend your message to try again.";
    assert_eq!(instead(goose), "Outage");
    let goose = "Ran into this error trying to compact: Failed to compact: the base prompt (system prompt, tool schemas, \
                 and conversation) exceeds the model's effective context window, and there are no tool responses to \
                 remove. Use a model or configuration with a larger usable context, disable some extensions to reduce the \
                 tool-schema payload, or start a new session..\n\nPlease try again or create a new session";
    assert_eq!(instead(goose), "OutOfTokens");
    let copilot = "Error: 400 This model's maximum context length is 128000 tokens. However, your messages resulted in \
                   130000 tokens. Please reduce the length of the messages.";
    assert_eq!(instead(copilot), "OutOfTokens");
    let codex = "Warning: Model metadata for `stub` not found. Defaulting to fallback metadata; this can degrade \
                 performance and cause issues.\n\n{\"error\":{\"message\":\"This model's maximum context length is 128000 \
                 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.\",\
                 \"type\":\"invalid_request_error\",\"param\":\"messages\",\"code\":\"context_length_exceeded\"}}\n\n\n";
    assert_eq!(instead(codex), "OutOfTokens");
    assert_eq!(instead(r#"{"error": {"message": "No.", "type": "other"}}"#), "Failed");
    let kimi = "Compacting conversation context…Compaction is blocked by the current turn; retry when the turn is \
                idle.Compaction cancelled.";
    assert_eq!(instead(kimi), "OutOfTokens");
    for answer in [
        r#"{"error": "none"}"#,
        r#"{"error": {"message": "shown to the user", "code": 7}, "ok": true}"#,
        "Network error: the page now says so.",
        "Compaction cancelled is now told.",
        "Error: 400 is what it answered before.",
    ] {
        assert_eq!(instead(answer), "nothing", "{answer}");
    }
}

#[test]
fn access_denied_remedy_depends_on_the_command() {
    assert!(find_access_remedy("claude -p --verbose", true).contains("/login"));
    assert!(find_access_remedy("env X=1 /usr/local/bin/codex exec -", true).contains("codex login"));
    assert!(find_access_remedy("claude -p", false).contains("add credit for `claude`"));
    assert_eq!(find_access_remedy("./my-agent.sh", true), "log the agent in, or set its API key");
}

#[test]
fn reset_moment_is_bounded_by_a_week() {
    let late = RateLimitReset::After(Duration::MAX).resolve_moment(now());
    assert_eq!(late.to_string(), "2026-01-24T10:00:00Z");
    assert_eq!(RateLimitReset::At(Timestamp::MAX).resolve_moment(now()), late);
    assert_eq!(RateLimitReset::At(Timestamp::MIN).resolve_moment(now()), now());
}
