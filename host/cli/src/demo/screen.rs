//! Cuts the tables to a terminal's height and width, and writes only the rows that changed, so that
//! the terminal does not flicker.

use std::fmt::Write as _;

use innkeeper_core::foreign;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::out::Commands;

/// Switches to the alternate screen, hides the cursor and turns line wrap off; and reverts all
/// three.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Clears the screen.
const CLEAR: &str = "\x1b[2J";
/// Clears the rest of the line.
const CLEAR_REST: &str = "\x1b[K";
/// A terminal with synchronized output shows everything between these at once.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
/// Rows of a section in addition to its lines: an empty row and its head.
const FRAME: usize = 2;
/// The fewest rows of a section among several: one line, and the number of the others.
const ROWS_MIN: usize = FRAME + 2;
/// The size that the demo assumes if the terminal does not report one.
const SIZE_DEFAULT: Size = Size { rows: 24, columns: 80 };

/// The size of a terminal, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Its height.
    pub(super) rows: usize,
    /// Its width.
    pub(super) columns: usize,
}

impl Size {
    /// The present size of the terminal on standard output.
    pub(super) fn now() -> Self {
        match rustix::termios::tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Self { rows: size.ws_row.into(), columns: size.ws_col.into() }
            }
            _ => SIZE_DEFAULT,
        }
    }
}

/// Lines under a head. The screen shows those that fit.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    /// The row above the lines.
    pub(super) head: String,
    /// The most important first.
    pub(super) lines: Vec<String>,
}

impl Section {
    /// Makes a section of a table whose first row is the head.
    pub(super) fn of_table(table: &str) -> Self {
        let mut lines = table.lines().map(str::to_owned);
        Self { head: lines.next().unwrap_or_default(), lines: lines.collect() }
    }

    /// The section in at most `rows` rows. The last one counts the lines that do not fit.
    fn rows(&self, rows: usize) -> Vec<String> {
        let room = rows.saturating_sub(FRAME);
        if room == 0 {
            return Vec::new();
        }
        let mut all = vec![String::new(), self.head.clone()];
        if self.lines.len() <= room {
            all.extend(self.lines.iter().cloned());
            return all;
        }
        all.extend(self.lines[..room - 1].iter().cloned());
        all.push(format!("... and {} more", self.lines.len() - (room - 1)));
        all
    }
}

/// The rows of the screen: `top`, and of each section as much as fits. A section that needs less
/// than its share leaves the rest to the others. Without room for all sections, the last ones are
/// left out.
pub(super) fn fit(top: &[String], sections: &[Section], size: Size) -> Vec<String> {
    let mut rows = top.to_vec();
    let mut left = size.rows.saturating_sub(rows.len());
    let mut sections: Vec<&Section> = sections.iter().filter(|one| !one.lines.is_empty()).collect();
    while sections.len() > 1 && left / sections.len() < ROWS_MIN {
        sections.pop();
    }
    let needs = |index: usize| sections[index].lines.len() + FRAME;
    let mut by_need: Vec<usize> = (0..sections.len()).collect();
    by_need.sort_by_key(|index| needs(*index));
    let mut given = vec![0; sections.len()];
    for (done, index) in by_need.iter().enumerate() {
        let share = left / (sections.len() - done);
        given[*index] = needs(*index).min(share);
        left -= given[*index];
    }
    for (section, given) in sections.iter().zip(given) {
        rows.extend(section.rows(given));
    }
    rows.truncate(size.rows);
    rows.iter().map(|row| cut(row, size.columns)).collect()
}

/// Cuts a line to `columns` cells, with an ellipsis if it was longer. Invisible characters become
/// codes, because names and messages come from guests and users.
fn cut(line: &str, columns: usize) -> String {
    let clean = foreign::one_line(line, foreign::LINE_BYTES_MAX);
    if clean.width() <= columns {
        return clean;
    }
    let mut text = String::new();
    let mut width = 0;
    for one in clean.chars() {
        width += one.width().unwrap_or_default();
        if width >= columns {
            break;
        }
        text.push(one);
    }
    if columns > 0 {
        text.push('…');
    }
    text
}

/// The rows that a terminal shows.
#[derive(Debug, Default)]
pub(super) struct Screen {
    shown: Option<(Size, Vec<String>)>,
}

impl Screen {
    /// The commands before the first rows.
    pub(super) fn enter() -> Commands {
        Commands(ENTER.to_owned())
    }

    /// The commands after the last rows.
    pub(super) fn leave() -> Commands {
        Commands(LEAVE.to_owned())
    }

    /// The commands after which the terminal shows exactly these rows: those that changed.
    pub(super) fn show(&mut self, size: Size, rows: Vec<String>) -> Commands {
        let before = match self.shown.take() {
            Some((before, rows)) if before == size => Some(rows),
            _ => None,
        };
        let mut text = String::new();
        if before.is_none() {
            text += CLEAR;
        }
        let before = before.unwrap_or_default();
        let empty = String::new();
        for index in 0..rows.len().max(before.len()) {
            let row = rows.get(index).unwrap_or(&empty);
            if before.get(index).unwrap_or(&empty) == row {
                continue;
            }
            // Writing into a String cannot fail.
            let _ = write!(text, "\x1b[{};1H{row}", index + 1);
            // After a full row the cursor is still on its last cell, which must stay.
            if row.width() < size.columns {
                text += CLEAR_REST;
            }
        }
        self.shown = Some((size, rows));
        Commands(if text.is_empty() { text } else { format!("{BEGIN}{text}{END}") })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    fn section(head: &str, count: usize) -> Section {
        let lines = (1..=count).map(|number| format!("{head} {number}")).collect();
        Section { head: head.to_owned(), lines }
    }

    fn fitted(sections: &[Section], rows: usize) -> Vec<String> {
        fit(&["top".to_owned()], sections, Size { rows, columns: 80 })
    }

    #[test]
    fn sections_that_fit_are_shown_completely() {
        let rows = fitted(&[section("a", 2), section("b", 0), section("c", 1)], 24);
        assert_eq!(rows, ["top", "", "a", "a 1", "a 2", "", "c", "c 1"]);
    }

    #[test]
    fn long_section_gets_the_rows_of_a_short_one_and_counts_the_rest() {
        let rows = fitted(&[section("a", 1), section("pods", 20)], 14);
        assert_eq!(rows.len(), 14);
        assert_eq!(rows[..4], ["top", "", "a", "a 1"]);
        assert_eq!(rows[4..7], ["", "pods", "pods 1"]);
        assert_eq!(rows[13], "... and 13 more");
    }

    #[test]
    fn small_screen_shows_the_first_sections() {
        let rows = fitted(&[section("a", 9), section("b", 9), section("c", 9)], 9);
        assert_eq!(
            rows,
            ["top", "", "a", "a 1", "... and 8 more", "", "b", "b 1", "... and 8 more"]
        );
    }

    #[test]
    fn rows_fit_any_terminal_size() {
        for rows in 0..12 {
            for columns in 0..12 {
                let size = Size { rows, columns };
                let all = [section("pods", 9), section("jobs", 3), section("logs", 40)];
                let shown = fit(&["the top".to_owned()], &all, size);
                assert!(shown.len() <= rows, "{size:?}: {shown:?}");
                assert!(shown.iter().all(|row| row.width() <= columns), "{size:?}: {shown:?}");
            }
        }
    }

    #[test]
    fn long_line_is_cut_by_cells_without_cursor_commands() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("表表表表", 6), "表表…");
        assert_eq!(cut("a\x1b[2Jb\nc\u{202e}", 30), r"a\u{1b}[2Jb\nc\u{202e}");
    }

    /// Fails unless the terminal shows exactly these rows.
    fn assert_shows(terminal: &vt100::Parser, rows: &[String]) {
        let shown = terminal.screen().contents();
        let wanted = rows.join("\n");
        assert_eq!(shown.trim_end_matches('\n'), wanted.trim_end_matches('\n'));
    }

    #[test]
    fn rows_shown_before_disappear_also_when_the_size_changes() {
        let rows = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let mut size = Size { rows: 4, columns: 6 };
        let cells = |count| NonZeroU16::new(count).unwrap();
        let mut terminal = vt100::Parser::new(cells(4), cells(6), 0);
        let mut screen = Screen::default();
        terminal.process(Screen::enter().0.as_bytes());
        for shown in [
            rows(&["abcdef", "ghi", "jk", "abcdef"]),
            rows(&["abcdef", "g", "", "123456"]),
            rows(&["abcdef"]),
            rows(&["", "x"]),
        ] {
            terminal.process(screen.show(size, shown.clone()).0.as_bytes());
            assert_shows(&terminal, &shown);
        }
        terminal.process(screen.show(size, rows(&["abcdef", "12"])).0.as_bytes());
        size = Size { rows: 2, columns: 4 };
        terminal.screen_mut().set_size(cells(2), cells(4));
        terminal.process(screen.show(size, rows(&["abc", "1"])).0.as_bytes());
        assert_shows(&terminal, &rows(&["abc", "1"]));
        assert!(terminal.screen().hide_cursor() && terminal.screen().alternate_screen());
        terminal.process(Screen::leave().0.as_bytes());
        assert!(!terminal.screen().hide_cursor() && !terminal.screen().alternate_screen());
    }

    #[test]
    fn unchanged_row_is_not_written_again() {
        let mut screen = Screen::default();
        let size = Size { rows: 3, columns: 9 };
        let rows = |last: &str| vec!["same".to_owned(), last.to_owned()];
        screen.show(size, rows("one"));
        assert_eq!(screen.show(size, rows("one")).0, "");
        assert_eq!(screen.show(size, rows("two")).0, format!("{BEGIN}\x1b[2;1Htwo\x1b[K{END}"));
    }
}
