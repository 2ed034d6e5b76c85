//! Tests of the rows of the live view.

use insta::assert_snapshot;
use windlass_engine::UsdCost;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn area() -> (StatusArea, Instant) {
    let began = Instant::now();
    let mut area = StatusArea::new(began);
    area.session = "fix-the-login-3757e17e".to_owned();
    (area.iteration, area.max_iterations, area.sent_back) = (2, 25, (1, 5));
    area.begin_activity(began + 70 * SECOND, "the agent", "works, with one piece of feedback");
    area.append_output(
        OutputStream::Stdout,
        "first\n漢字漢字漢字漢字漢字漢字 and more\n\x1b[31mred\u{202e}".as_bytes(),
    );
    (area, began)
}

fn shown(columns: usize, height: usize) -> String {
    let (mut area, began) = area();
    area.time = Some(600 * SECOND);
    area.used = AgentUsage { input: 11_000, output: 1_400, cost: Some(UsdCost(130_000)), ..AgentUsage::default() };
    let rows = area.render_rows(began + Duration::from_millis(83_400), (columns, height), Palette::NONE);
    rows.into_iter().map(|row| row.text + "\n").collect()
}

#[test]
fn area_leaves_out_parts_that_have_no_room() {
    assert_snapshot!(shown(100, 30), @r"
    ── iteration 2/25 · 1:23 · 8:37 left · sent back 1/5 · 12,400 tokens, $0.13 ───────────────────────
      the agent works, with one piece of feedback 0:13
      │ first
      │ 漢字漢字漢字漢字漢字漢字 and more
      │ red\u{202e}
    ");
    assert_snapshot!(shown(60, 30), @r"
    ── iteration 2/25 · 1:23 · 8:37 left · sent back 1/5 ──────
      the agent works, with one piece of feedback 0:13
      │ first
      │ 漢字漢字漢字漢字漢字漢字 and more
      │ red\u{202e}
    ");
    assert_snapshot!(shown(20, 30), @r"
    iteration 2/25 1:23
    the agent wor… 0:13
      │ first
      │ 漢字漢字漢字漢…
      │ red\u{202e}
    ");
    assert_snapshot!(shown(20, 3), @r"
    iteration 2/25 1:23
    the agent wor… 0:13
    ");
    assert_eq!((shown(1, 30), shown(100, 1)), (String::new(), String::new()));
}

#[test]
fn activity_that_is_being_ended_is_not_shown_as_working() {
    let (mut area, began) = area();
    area.begin_ending(began + 80 * SECOND, "Ctrl-C ends everything now");
    let shown = |area: &StatusArea| {
        let rows = area.render_rows(began + 83 * SECOND, (70, 30), Palette::NONE);
        rows.into_iter().map(|row| row.text + "\n").collect::<String>()
    };
    assert_snapshot!(shown(&area), @r"
    ── ending · iteration 2/25 · 1:23 · sent back 1/5 ───────────────────
      the agent is being ended 0:03
      Ctrl-C ends everything now
    ");
    area.begin_activity(began + 81 * SECOND, "the agent", "listens");
    assert!(shown(&area).contains("  the agent listens 0:02\n  Ctrl-C ends everything now\n"));
    area.begin_waiting(began + 82 * SECOND, 60 * SECOND);
    area.begin_ending(began + 82 * SECOND, "Ctrl-C ends everything now");
    assert!(!shown(&area).contains("waits"));
}

#[test]
fn rows_are_narrower_than_the_terminal() {
    let (mut area, began) = area();
    area.begin_ending(began, "once more ends everything now");
    for columns in 0..200 {
        for row in area.render_rows(began + 3_600_000 * SECOND, (columns, 30), Palette::NONE) {
            assert!(text::display_width(&row.text) < columns, "{columns}: {row:?}");
            assert!(!row.text.contains(char::is_control));
        }
    }
}

#[test]
fn clocks_change_together() {
    let (mut area, began) = area();
    area.set_earlier_time(Duration::from_millis(300));
    area.begin_activity(began + Duration::from_millis(1500), "x", "runs");
    let at = began + Duration::from_millis(2600);
    let shown = |at| area.render_rows(at, (80, 24), Palette::NONE);
    let tick = area.time_to_next_tick(at);
    assert_eq!(tick, Duration::from_millis(100));
    assert_eq!(shown(at), shown(at + tick - Duration::from_millis(1)));
    let (before, after) = (shown(at), shown(at + tick));
    assert!(before[0] != after[0] && before[1] != after[1], "{after:?}");
    assert_eq!(shown(at + tick), shown(at + tick + Duration::from_millis(999)));
}
