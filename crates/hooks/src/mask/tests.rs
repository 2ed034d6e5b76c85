//! Secrets in text, in streams and in files.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;
use windlass_process::{CapturedOutput, SpillFile};

use super::*;

#[track_caller]
fn check(values: &[(&str, &str)], text: &str, expected: &str) {
    let mask = SecretMask::new(values.iter().copied());
    assert_eq!(mask.mask_text(text), expected);
    let mut stream = mask.stream();
    let mut streamed: Vec<u8> = text.bytes().flat_map(|byte| stream.push(&[byte])).collect();
    streamed.extend(stream.finish());
    assert_eq!(String::from_utf8_lossy(&streamed), expected);
}

#[test]
fn secret_values_become_their_names() {
    check(&[], "nothing to hide", "nothing to hide");
    check(&[("TOKEN", "hunter2")], "a hunter2, hunter2!", "a [secret TOKEN], [secret TOKEN]!");
    check(&[("TOKEN", "hunter2")], "hunter", "hunter");
    check(&[("PIN", "123"), ("TOKEN", "1234")], "123 1234", "123 [secret TOKEN]");
    check(&[("TOKEN", "hunter2\n")], "is hunter2.", "is [secret TOKEN].");
    check(&[("BLANK", "     ")], "a      b", "a      b");
    check(&[("A", "same-one"), ("B", "same-one")], "same-one", "[secret A]");
}

#[test]
fn hook_actions_are_masked() {
    use windlass_engine::{ActionRequest, ChangeRef, HookOutcome};
    let action = |word: &str| ActionRequest {
        kind: format!("do {word}"),
        payload: json!({"goal": word, "labels": [word, 7], word: {"a": word}}),
    };
    let change = |url: String| ChangeRef { branch: None, base: None, url: Some(url), number: None };
    let report = |word: &str| HookReport {
        message: Some(word.to_owned()),
        feedback: Some(word.to_owned()),
        actions: vec![action(word)],
        context: [(word.to_owned(), json!([word]))].into_iter().collect(),
        change: Some(ChangeFact::Opened(change(format!("https://{word}@forge")))),
        ..HookOutcome::Success.into()
    };
    assert_eq!(SecretMask::new([("TOKEN", "hunter2")]).mask_report(report("hunter2")), report("[secret TOKEN]"));
    assert_eq!(SecretMask::new([("TOKEN", "hunter2")]).mask_report(report("bystander")), report("bystander"));
}

#[test]
fn longest_secret_is_masked_first_and_overlaps_are_covered() {
    check(&[("SHORT", "abcd"), ("LONG", "abcdef")], "xabcdefx abcdx", "x[secret LONG]x [secret SHORT]x");
    check(&[("LEFT", "abcd"), ("RIGHT", "cdef")], "xabcdefx", "x[secret LEFT]x");
    check(&[("LEFT", "abcd"), ("RIGHT", "cdef")], "abcdabcd cdef", "[secret LEFT][secret LEFT] [secret RIGHT]");
    check(&[("A", "aaaa")], "aaaaaaaaab", "[secret A]b");
}

#[test]
fn other_forms_are_masked_too() {
    let value = "p\"a/s s\n\u{e9}&+?~";
    let mask = SecretMask::new([("KEY", value)]);
    let plain: String = value
        .chars()
        .flat_map(|letter| if letter == '\u{e9}' { "\\u00e9".chars().collect() } else { vec![letter] })
        .collect();
    for form in [
        value.to_owned(),
        json!(value).to_string().trim_matches('"').to_owned(),
        plain.replace('"', "\\\"").replace('\n', "\\n"),
        plain.replace('"', "\\\"").replace('\n', "\\n").replace("00e9", "00E9"),
        "p%22a%2Fs%20s%0A%C3%A9%26%2B%3F~".to_owned(),
        "p%22a%2fs%20s%0a%c3%a9%26%2b%3f~".to_owned(),
        "p%22a%2Fs+s%0A%C3%A9%26%2B%3F%7E".to_owned(),
        STANDARD.encode(value),
        STANDARD.encode(value).trim_end_matches('=').to_owned(),
        URL_SAFE_NO_PAD.encode(value),
    ] {
        assert_eq!(mask.mask_text(&format!("<{form}>")), "<[secret KEY]>", "{form}");
    }
}

#[test]
fn basic_auth_header_is_masked() {
    for value in ["correct-horse", "hunter22"] {
        let mask = SecretMask::new([("KEY", value)]);
        for user in ["", "a", "ab", "abc", "abcd:"] {
            for after in ["", "x", "xy", "xyz"] {
                let header = STANDARD.encode(format!("{user}{value}{after}"));
                let masked = mask.mask_text(&header);
                assert!(masked.contains("[secret KEY]"), "{header} {masked}");
                let left: usize = masked.replace("[secret KEY]", "").len();
                assert!(left <= (user.len() + after.len()) * 2 + 6, "{header} {masked}");
            }
        }
    }
}

const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASC/KcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
MzEfYyjiWA4R4+M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu
-----END PRIVATE KEY-----";

#[test]
fn lines_of_a_value_are_masked_by_themselves() {
    let crossed = KEY.replace('\n', "\r\n");
    for value in [KEY, &crossed] {
        let mask = SecretMask::new([("KEY", value)]);
        for before in ["    ", "+", "> \t", "3: "] {
            let text: String = KEY.lines().map(|line| format!("{before}{line}\n")).collect();
            let marked = format!("{before}[secret KEY]\n");
            let expected =
                format!("{before}-----BEGIN PRIVATE KEY-----\n{marked}{marked}{before}-----END PRIVATE KEY-----\n");
            assert_eq!(mask.mask_text(&text), expected);
        }
        assert_eq!(mask.mask_text(value), "[secret KEY]");
    }
    // Words and fields may occur anywhere.
    let account = "{\n  \"type\": \"service_account\",\n  \"key\": \"hunter2\"\n}";
    let words = SecretMask::new([("ACCOUNT", account)]);
    assert_eq!(words.mask_text("\"type\": \"service_account\","), "\"type\": \"service_account\",");
    let certificate = STANDARD.encode("-----BEGIN PRIVATE KEY-----\nanother\n-----END PRIVATE KEY-----\n");
    assert_eq!(SecretMask::new([("KEY", KEY)]).mask_text(&certificate), certificate);
}

/// Line lengths of coreutils' `base64`, `openssl` and mail.
#[test]
fn base64_in_lines_is_masked() {
    let long: String = ('!'..='z').collect();
    for value in [&long[..40], &long, KEY] {
        let mask = SecretMask::new([("KEY", value)]);
        let own: String = value.split_inclusive('\n').filter(|line| !line.starts_with("-----")).collect();
        for width in [64, 76] {
            for before in 0..80 {
                let encoded = STANDARD.encode(format!("{}{value}", "u".repeat(before)));
                let lines: Vec<&str> =
                    encoded.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
                let masked = mask.mask_text(&format!("  {}\n", lines.join("\n  "))).into_owned();
                let bytes: Vec<u8> = masked
                    .split_whitespace()
                    .filter(|word| !"[secret KEY]".contains(word))
                    .flat_map(|line| line.split("[secret").chain(line.rsplit("KEY]")))
                    .flat_map(|piece| URL_SAFE_NO_PAD.decode(piece.get(..piece.len() / 4 * 4).unwrap_or_default()))
                    .flatten()
                    .collect();
                let left = own.as_bytes().windows(9).any(|window| bytes.windows(9).any(|other| other == window));
                assert!(masked.contains("[secret KEY]") && !left, "{masked}");
            }
        }
    }
}

#[test]
fn control_sequences_hide_no_secret() {
    let mask = SecretMask::new([("TOKEN", "hunter2-abc-XYZ")]);
    let place = tempfile::tempdir().unwrap();
    for hidden in [
        "hunter\x1b[1m2-abc-XYZ",
        "h\0unter2-abc\x1b]0;title\x07-XYZ",
        "hunter2\u{9b}-abc-XY\x1b(BZ",
        "\x1b[01;31m\x1b[Khunter2\x1b[m\x1b[K-abc\x08-XYZ",
    ] {
        let text = format!("\x1b[1mis\x1b[m {hidden}, {hidden}.\n");
        let expected = "is [secret TOKEN], [secret TOKEN].\n";
        assert_eq!(mask.mask_text(&text), expected);
        for size in 1..text.len() {
            let mut stream = mask.open_display_stream();
            let mut shown: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
            shown.extend(stream.finish());
            assert_eq!(String::from_utf8_lossy(&shown), expected, "{size}");
        }
        // The value lies across two reads of the file.
        let filler = "\x1b[1m".repeat(READ_CHUNK_BYTES / 4 - 2);
        let path = place.path().join("record");
        fs::write(&path, format!("{filler}{text}")).unwrap();
        mask.mask_file(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
    let seen = "\x1b[1mis hunter2-abc-XYZ\x1b[m\0";
    let path = place.path().join("seen");
    fs::write(&path, seen).unwrap();
    mask.mask_file(&path).unwrap();
    let expected = "\x1b[1mis [secret TOKEN]\x1b[m\0";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected, "what hides nothing keeps its bytes");
    assert_eq!(mask.mask_text(seen), expected);
    assert_eq!(SecretMask::default().open_display_stream().push(seen.as_bytes()), seen.as_bytes());
}

#[test]
fn command_texts_are_masked() {
    use windlass_engine::{
        Command, GateAnswer, GateFinding, NewTask, NoteKind, SessionEndKind, TaskPatch, TaskResolution, Workspace,
    };
    let id: windlass_engine::TaskId = "T1".parse().unwrap();
    let commands = |word: &str, owner: &str| {
        let (text, texts) = (format!("a {word}"), vec![word.to_owned()]);
        let some = Some(text.clone());
        let new = NewTask {
            goal: text.clone(),
            body: some.clone(),
            deliverables: texts.clone(),
            labels: texts.clone(),
            ..NewTask::default()
        };
        let patch = TaskPatch {
            goal: some.clone(),
            body: some.clone(),
            deliverables: Some(texts.clone()),
            labels: Some(texts.clone()),
            add_labels: texts.clone(),
            remove_labels: texts.clone(),
            ..TaskPatch::default()
        };
        let (until, owner) = (windlass_engine::Timestamp::from_millis(0), owner.parse().unwrap());
        let context = json!({word: [word]});
        let session: windlass_engine::SessionName = "s".parse().unwrap();
        let workspace = Workspace {
            branch: "windlass/t1".to_owned(),
            base: "main".to_owned(),
            start: "0".repeat(40),
            name: "t1".to_owned(),
            stacked_on: Vec::new(),
            protected: None,
        };
        let conflict = GateFinding { source: "rebase_on_main".to_owned(), text: text.clone() };
        [
            Command::OpenWorkspace {
                name: session.clone(),
                workspace,
                reused: true,
                protected: None,
                feedback: Some(conflict),
            },
            Command::CreateTask(new),
            Command::UpdateTask { id, patch },
            Command::ClaimTask { id: None, owner, until, agent: some.clone() },
            Command::StartTask { id, context: context.clone() },
            Command::CompleteTask { id, result: some.clone(), artifacts: texts.clone() },
            Command::BlockTask { id, reason: text.clone(), required_knowledge: texts },
            Command::FailTask { id, reason: text.clone() },
            Command::NeedContinuation { id, reason: text.clone() },
            Command::ReleaseTask { id, reason: text.clone() },
            Command::ReopenTask { id, reason: text.clone() },
            Command::AddNote { task: None, kind: NoteKind::Tip, text: text.clone() },
            Command::AnswerTask {
                id,
                answer: TaskResolution::Continue,
                text: some.clone(),
                ignores: Vec::new(),
                work: None,
            },
            Command::AnswerGate { session: session.clone(), answer: GateAnswer::Continue, text: some.clone() },
            Command::LeaveToPerson { name: session.clone(), reason: text.clone(), commits: Vec::new() },
            Command::StopSession { name: session.clone(), ending: SessionEndKind::Cancelled, reason: some.clone() },
            Command::AbandonWorkflow {
                effect: "1.0".parse().unwrap(),
                owner: "w1".parse().unwrap(),
                error: text.clone(),
            },
            Command::Say { session: session.clone(), text },
            Command::CancelSession { name: session, reason: some },
            Command::TriggerWorkflow { id: "w".into(), context: context.as_object().unwrap().clone(), task: None },
        ]
    };
    let mask = SecretMask::new([("TOKEN", "hunter22")]);
    for (plain, masked) in commands("hunter22", "hunter22").iter().zip(&commands("[secret TOKEN]", "secret")) {
        assert_eq!(mask.mask_command(plain).as_ref(), masked);
        assert_eq!(mask.mask_command(masked).as_ref(), masked);
        assert!(matches!(SecretMask::default().mask_command(plain), Cow::Borrowed(_)));
    }
}

#[test]
fn bytes_that_are_no_text_are_masked() {
    let mask = SecretMask::new([("RAW", [0xff, 0xfe, 0x00, 0x80])]);
    assert_eq!(mask.mask_bytes(b"a\xff\xfe\x00\x80b").as_ref(), b"a[secret RAW]b");
    // The displayed form is text: the rest of a value must not be left in it.
    let half_text = SecretMask::new([("RAW", b"\xffhunter2")]);
    let mut stream = half_text.open_display_stream();
    let shown = [stream.push(b"a\xffhunt"), stream.push(b"er2b"), stream.finish()].concat();
    assert_eq!(shown, b"a[secret RAW]b");
    assert!(matches!(mask.mask_bytes(b"nothing"), Cow::Borrowed(_)));
    assert!(matches!(mask.mask_text("nothing"), Cow::Borrowed(_)));
}

#[test]
fn mask_marker_never_contains_secret_value() {
    check(&[("hunter2", "hunter2")], "hunter2", "[secret]");
    check(&[("A", "secret")], "secret", "[***]");
}

#[test]
fn debug_output_of_mask_omits_secret_values() {
    let mask = SecretMask::new([("TOKEN", "hunter2-hunter2")]);
    let mut stream = mask.stream();
    assert_eq!(stream.push(b"hunter2-hunt"), b"");
    let printed = format!("{mask:?} {mask:#?} {stream:?} {stream:#?}");
    assert!(printed.contains("TOKEN") && !printed.contains("hunter"), "{printed}");
    let numbers = "104, 117, 110";
    assert!(!printed.contains(numbers), "{printed}");
}

#[test]
fn mask_stream_holds_back_less_than_longest_form() {
    let mask = SecretMask::new([("TOKEN", "hunter2")]);
    let mut stream = mask.stream();
    let (mut given, text) = (0, "hunter2 ".repeat(50) + &"x".repeat(200));
    let mut seen = Vec::new();
    for byte in text.bytes() {
        seen.push(byte);
        given += stream.push(&[byte]).len();
        assert!(stream.held.len() < mask.longest);
    }
    assert!(given > 0);
}

#[test]
fn file_is_masked_in_place_and_keeps_permissions() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("record");
    let mask = SecretMask::new([("TOKEN", "hunter2")]);
    let filler = "x".repeat(READ_CHUNK_BYTES - 3);
    fs::write(&path, format!("{filler}hunter2{filler}hunter2\n")).expect("a file");
    let mut narrow = fs::metadata(&path).expect("it is there").permissions();
    narrow.set_readonly(true);
    fs::set_permissions(&path, narrow.clone()).expect("narrower");
    mask.mask_file(&path).expect("masked");
    let masked = fs::read_to_string(&path).expect("still there");
    assert!(masked == format!("{filler}[secret TOKEN]{filler}[secret TOKEN]\n"));
    assert_eq!(fs::metadata(&path).expect("it is there").permissions(), narrow);
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);

    let untouched = fs::metadata(&path).expect("it is there").modified().expect("a time");
    mask.mask_file(&path).expect("nothing to do");
    assert_eq!(fs::metadata(&path).expect("it is there").modified().expect("a time"), untouched);
    assert_eq!(mask.mask_file(&directory.path().join("none")).expect_err("missing").kind(), io::ErrorKind::NotFound);
    let refused = mask.mask_file(directory.path()).expect_err("a directory");
    assert_eq!(refused.to_string(), "cannot mask what is not a regular file");
}

/// The stream releases text without secrets at once.
#[test]
fn only_the_beginning_of_a_value_is_waited_for() {
    let mask = SecretMask::new([("TOKEN", "hunter2")]);
    let mut stream = mask.stream();
    let told = ["shout! ", "h", "unt ", "the hunter", "2 hunte", "d"].map(|piece| stream.push(piece.as_bytes()));
    let told = told.map(|piece| String::from_utf8(piece).unwrap());
    assert_eq!(told, ["shout! ", "", "hunt ", "the ", "[secret TOKEN] ", "hunted"]);
}

/// Head and tail, and the number of bytes missing between them.
#[test]
fn partial_secret_is_removed_at_gap_of_captured_output() {
    let mask = SecretMask::new([("TOKEN", "hunter2")]);
    let pad = "x".repeat(mask.longest - 1);
    let check = |head: &str, tail: &str, left_out: u64, expected: (&str, &str)| {
        let total = left_out + (head.len() + tail.len()) as u64;
        let (head, tail) = (head.as_bytes().to_vec(), tail.as_bytes().to_vec());
        let stdout = CapturedOutput { head, tail, total, spilled: None };
        let kept = mask.mask_run(ProgramOutcome { stdout, ..ProgramOutcome::success_with_stdout(Vec::new()) }).stdout;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!((text(&kept.head).as_str(), text(&kept.tail).as_str()), expected);
        assert!(kept.omitted_byte_count() >= left_out);
        assert_eq!(kept.omitted_byte_count() == 0, left_out == 0);
    };
    check("is hun", "ter2.", 0, ("is [secret TOKEN].", ""));
    check("is ", "it", 0, ("is it", ""));
    check(&format!("{pad}is hun"), &format!("ter2.{pad}"), 1, ("xxxxxx", "xxxxx"));
    check("hun", "ter2", 1, ("", ""));
    // A value that is complete without its colours, and one whose colours reach into the gap.
    let coloured = "hun\x1b[0mter2";
    let (head, tail) = (format!("is {coloured}{pad}"), format!("{pad}{coloured} it"));
    check(&head, &tail, 1, ("is [secret TOKEN]", "[secret TOKEN] it"));
    let colours = |text: &str| text.chars().map(|letter| format!("\x1b[1m{letter}")).collect::<String>();
    let (head, tail) = (format!("{pad}is {}", colours("hun")), format!("{}{pad}", colours("ter2.")));
    check(&head, &tail, 1, ("xxxxxx", "xxxxx"));
    // A complete value that reaches into the dropped part.
    check(&format!("is hunter2{}", &pad[3..]), &format!("{}hunter2 it", &pad[3..]), 9, ("is [secret TOKEN]", " it"));
}

#[test]
fn partial_secret_is_removed_at_gap_mark_in_text() {
    let mask = SecretMask::new([("TOKEN", "hunter2")]);
    let pad = "x".repeat(mask.longest);
    for cut in 1..7 {
        let (first, second) = "hunter2".split_at(cut);
        let text = format!(
            "hunter2 {pad}{first}\n[9 bytes left out]\n{second}{pad}{first}\n[9 bytes left out]\n{second}{pad} hunter2"
        );
        let kept = mask.mask_excerpt(&text);
        assert!(kept.starts_with("[secret TOKEN] x") && kept.ends_with("x [secret TOKEN]"), "{kept}");
        assert_eq!(kept.matches("\n[9 bytes left out]\n").count(), 2, "{kept}");
        let rest = kept.replace("[secret TOKEN]", "").replace("[9 bytes left out]", "");
        assert!(rest.chars().all(|c| " x\n".contains(c)), "{kept}");
    }
    assert_eq!(mask.mask_excerpt("is hunter2\n[bytes left out]\nhun"), "is [secret TOKEN]\n[bytes left out]\nhun");
    // A quoted mark removes nothing but possible fragments of a value.
    let quoted = "it says:\n[9 bytes left out]\nfine\n<promise>COMPLETE</promise>";
    assert_eq!(mask.mask_excerpt(quoted), quoted);
    assert_eq!(
        SecretMask::new([("", "")]).mask_excerpt("hun\n[9 bytes left out]\nter2"),
        "hun\n[9 bytes left out]\nter2"
    );
}

#[test]
fn truncated_response_body_ends_before_partial_secret() {
    let mask = SecretMask::new([("TOKEN", "hunter2")]);
    let body = |text: &str, cut| {
        let response = WebhookResponse { status: 200, body: text.as_bytes().to_vec(), cut, retry_after: None };
        String::from_utf8_lossy(&mask.mask_response(response).body).into_owned()
    };
    assert_eq!(body("a hunter2 hunt", false), "a [secret TOKEN] hunt");
    assert_eq!(body("a hunter2 and more hunt", true).replace("[secret TOKEN]", "").find("hun"), None);
}

#[test]
fn much_text_is_quick() {
    let mask = SecretMask::new((0..20).map(|number| (format!("N{number}"), "a".repeat(4 + number))));
    let text = "a".repeat(64 * 1024) + &"b".repeat(1024 * 1024);
    assert!(mask.mask_text(&text).starts_with("[secret N19]bbb"));
}

proptest! {
    /// Letters of a small alphabet, so that values overlap and repeat.
    #[test]
    fn stream_masks_values_for_any_chunks(
        values in prop::collection::vec("[abc%\"]{4,7}", 0..4),
        text in "[abc%\"é]{0,60}",
        pieces in prop::collection::vec(0_usize..9, 1..40),
    ) {
        let mask = SecretMask::new(values.iter().enumerate().map(|(number, value)| (number.to_string(), value)));
        let masked = mask.mask_text(&text);
        for value in &values {
            prop_assert!(!masked.contains(value.as_str()), "{value} in {masked}");
        }
        prop_assert_eq!(mask.mask_text(&masked), masked.as_ref());
        let (mut stream, mut streamed, mut rest) = (mask.stream(), Vec::new(), text.as_bytes());
        for piece in pieces {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            streamed.extend(stream.push(now));
            rest = later;
        }
        streamed.extend(stream.push(rest));
        streamed.extend(stream.finish());
        prop_assert_eq!(streamed, masked.as_bytes());
    }
}

proptest! {
    #[test]
    fn secret_mixed_with_random_control_sequences_is_masked_everywhere(
        value in "[a-zA-Z0-9]{4,12}",
        between in prop::collection::vec("(\x1b\\[[0-9;]{0,3}[mK]|\x1b\\][a-z]{0,4}\x07|\x1b\\(B|\0|\x08|\u{9b}){0,2}", 12),
        around in "[a-z\r\n\x1b\\[]{0,9}",
        size in 1_usize..9,
    ) {
        let within: String = value.chars().zip(&between).flat_map(|(letter, before)| before.chars().chain([letter])).collect();
        let text = format!("{around}\n{within}{around}");
        let mask = SecretMask::new([("KEY", &value)]);
        let mut stream = mask.open_display_stream();
        let mut shown: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
        shown.extend(stream.finish());
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), &text).unwrap();
        mask.mask_file(file.path()).unwrap();
        let kept = fs::read_to_string(file.path()).unwrap();
        for seen in [String::from_utf8_lossy(&shown).as_ref(), &mask.mask_text(&text), &kept, &clean_output(&mask.mask_text(&text)), &clean_output(&kept)] {
            prop_assert!(!seen.contains(&value), "{value} in {seen:?}");
        }
    }
}

/// A file that cannot be masked is deleted: here a link took its place.
#[test]
fn spill_file_that_cannot_be_masked_is_deleted() {
    let place = tempfile::tempdir().unwrap();
    let (other, record) = (place.path().join("other"), place.path().join("record"));
    fs::write(&other, "theirs hunter22").unwrap();
    std::os::unix::fs::symlink(&other, &record).unwrap();
    let spilled = Some(SpillFile { path: record.clone(), kept: 9, error: None });
    let captured = CapturedOutput { total: 9, spilled, ..CapturedOutput::default() };
    let ran = ProgramOutcome { stdout: captured, ..ProgramOutcome::success_with_stdout(Vec::new()) };
    SecretMask::new([("KEY", "hunter22")]).mask_spill_files(&ran);
    assert!(fs::symlink_metadata(&record).is_err());
    assert_eq!(fs::read_to_string(&other).unwrap(), "theirs hunter22", "and nothing else");
}
