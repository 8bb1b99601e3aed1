//! The tour's table: one line a request, printed as it happens.

use std::io::{self, Write};
use std::time::Duration;

/// Room for the longest request; the other columns have theirs in [`Table::line`].
const REQUEST_COLUMNS: usize = 33;
const WHY_COLUMNS: usize = 33;

/// A request with what came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) request: &'static str,
    pub(super) status: String,
    pub(super) answered_by: &'static str,
    pub(super) why: String,
    pub(super) seen: String,
    pub(super) elapsed: Duration,
    /// What is otherwise than promised, a line each.
    pub(super) faults: Vec<String>,
}

/// Numbers and aligns rows.
#[derive(Debug)]
pub(super) struct Table<W> {
    out: W,
    is_coloured: bool,
    rows: usize,
}

/// Select Graphic Rendition parameters (ECMA-48 §8.3.117).
#[derive(Clone, Copy)]
enum Colour {
    Bold = 1,
    Faint = 2,
    Red = 31,
    Green = 32,
}

impl<W: Write> Table<W> {
    pub(super) fn new(out: W, is_coloured: bool) -> Table<W> {
        Table { out, is_coloured, rows: 0 }
    }

    /// Prints the names of the columns.
    ///
    /// # Errors
    /// When nobody reads the output any more.
    pub(super) fn print_columns(&mut self) -> io::Result<()> {
        let names = ["#", "request", "status", "from", "why", "origin saw", "µs"];
        let line = Self::line(&names);
        let line = self.painted(Colour::Bold, &format!("  {line}"));
        writeln!(self.out, "{line}")
    }

    /// Prints a line over the rows that follow.
    ///
    /// # Errors
    /// As for [`Table::print_columns`].
    pub(super) fn print_heading(&mut self, text: &str) -> io::Result<()> {
        let line = self.painted(Colour::Faint, text);
        writeln!(self.out, "{line}")
    }

    /// Prints a row, and below it what is otherwise than promised.
    ///
    /// # Errors
    /// As for [`Table::print_columns`].
    pub(super) fn print_row(&mut self, row: &Row) -> io::Result<()> {
        self.rows += 1;
        let line = Self::line(&[
            &self.rows.to_string(),
            row.request,
            &row.status,
            row.answered_by,
            &row.why,
            &row.seen,
            &grouped(row.elapsed.as_micros()),
        ]);
        let mark = if row.faults.is_empty() {
            self.painted(Colour::Green, "✓")
        } else {
            self.painted(Colour::Red, "✗")
        };
        writeln!(self.out, "{mark} {line}")?;
        for fault in &row.faults {
            let fault = self.painted(Colour::Red, fault);
            writeln!(self.out, "       {fault}")?;
        }
        self.out.flush()
    }

    fn line([number, request, status, answered_by, why, seen, elapsed]: &[&str; 7]) -> String {
        format!(
            "{number:>2}  {request:<REQUEST_COLUMNS$}  {status:<6}  {answered_by:<9}  \
             {why:<WHY_COLUMNS$}  {seen:<10}  {elapsed:>9}"
        )
    }

    fn painted(&self, colour: Colour, text: &str) -> String {
        match self.is_coloured {
            true => format!("\x1b[{}m{text}\x1b[0m", colour as u8),
            false => text.to_owned(),
        }
    }
}

/// A number with a comma before each three digits.
pub(super) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Row, Table, grouped};

    #[test]
    fn numbers_are_grouped_by_three() {
        let table = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in table {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn faults_stand_below_their_row_and_colour_is_a_choice() {
        let faults = vec!["status: expected 200, got 502".to_owned()];
        let row = Row { request: "GET /", faults, ..Row::default() };
        for is_coloured in [false, true] {
            let mut out = Vec::new();
            Table::new(&mut out, is_coloured).print_row(&row).unwrap();
            let text = String::from_utf8(out).unwrap();
            let lines: Vec<_> = text.lines().collect();
            assert!(lines[0].contains('✗') && lines[1].contains("got 502"), "{text}");
            assert_eq!(text.contains('\x1b'), is_coloured);
        }
    }
}
