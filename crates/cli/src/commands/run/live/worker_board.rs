//! The status area of several workers: a row for each, and their totals above.

use std::time::Instant;

use windlass_app::run::workers::PoolProgress;
use windlass_text as text;

use super::area::{StatusArea, TerminalRow};
use crate::output::{Palette, TextTone};

/// Renders the area for a terminal of this size.
pub fn render_board(
    all: &StatusArea,
    seats: &[StatusArea],
    totals: PoolProgress,
    (at, (columns, height)): (Instant, (usize, usize)),
    palette: Palette,
) -> Vec<TerminalRow> {
    // The last column and one row stay free, as in `StatusArea::render_rows`.
    let (width, height) = (columns.saturating_sub(1), height.saturating_sub(1));
    if width == 0 {
        return Vec::new();
    }
    let PoolProgress { done, left, ready } = totals;
    let at_work = seats.iter().filter(|seat| !seat.session.is_empty()).count();
    let left = if left == 0 { String::new() } else { format!(" · {left} left") };
    let totals = format!("{at_work} at work · {done} done{left} · {ready} ready");
    let mut rows = vec![all.render_totals_row(&totals, at, width, palette)];
    rows.extend(
        all.end_hint()
            .map(|quicker| TerminalRow::new(palette, &[(TextTone::Warning, &text::fit_to_width(quicker, width))])),
    );
    let room = height.saturating_sub(rows.len());
    let shown = if seats.len() > room { room.saturating_sub(1) } else { seats.len() };
    rows.extend(
        seats.iter().take(shown).zip(1..).map(|(seat, number)| seat.render_worker_row(number, at, width, palette)),
    );
    if shown < seats.len() {
        let more = text::fit_to_width(&format!("    and {} more", seats.len() - shown), width);
        rows.push(TerminalRow::new(palette, &[(TextTone::Faint, &more)]));
    }
    rows.truncate(height);
    rows
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::*;

    fn shown(columns: usize, height: usize) -> String {
        let began = Instant::now();
        let mut seats = [StatusArea::new(began), StatusArea::new(began), StatusArea::new(began)];
        seats[0].session = "t7-fix-the-login".to_owned();
        (seats[0].task, seats[0].iteration, seats[0].max_iterations) = (Some("T7".to_owned()), 2, 25);
        seats[0].begin_activity(began, "the agent", "works");
        seats[2].session = "t9".to_owned();
        seats[2].task = Some("T9".to_owned());
        seats[2].begin_activity(began + Duration::from_secs(60), "merge_pr", "runs");
        let totals = PoolProgress { done: 12, left: 1, ready: 30 };
        let at = began + Duration::from_secs(83);
        let rows = render_board(&StatusArea::new(began), &seats, totals, (at, (columns, height)), Palette::NONE);
        assert!(rows.iter().all(|row| text::display_width(&row.text) < columns), "{rows:?}");
        rows.into_iter().map(|row| row.text + "\n").collect()
    }

    #[test]
    fn each_worker_has_a_row() {
        assert_snapshot!(shown(72, 30), @r"
        ── 2 at work · 12 done · 1 left · 30 ready · 1:23 ─────────────────────
         1  T7                          the agent works · iteration 2/25 · 1:23
         2  waits for a task
         3  T9                                             merge_pr runs · 0:23
        ");
        assert_snapshot!(shown(30, 4), @r"
        2 at work · 12 done · 1 left…
         1  T7       the agent works…
            and 2 more
        ");
        for columns in 0..90 {
            shown(columns, 5);
        }
    }
}
