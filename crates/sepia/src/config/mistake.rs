//! What is wrong in a configuration file, shown where it stands.
//!
//! A mistake names the place, says what is wrong there and what would be right. All mistakes of a
//! file are shown at once, in the file's order, because being sent back for one at a time is what
//! makes people hate configuration files.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::base::limits;

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mistake {
    /// What is wrong, in a line.
    pub(super) title: String,
    /// The bytes of the file under which the caret stands.
    pub(super) span: Range<usize>,
    /// What stands beside the caret.
    pub(super) label: String,
    /// Another place that explains it.
    pub(super) context: Option<(Range<usize>, String)>,
    /// What to do.
    pub(super) help: Option<String>,
}

impl Mistake {
    pub(super) fn new(
        title: impl Into<String>,
        span: Range<usize>,
        label: impl Into<String>,
    ) -> Self {
        let (title, label) = (title.into(), label.into());
        Mistake { title, span, label, context: None, help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn context(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.context = Some((span, label.into()));
        self
    }
}

/// All mistakes of a file, with its text; displays as a report for a terminal without colours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistakes {
    path: String,
    text: String,
    list: Vec<Mistake>,
}

impl Mistakes {
    /// Sorts by place, so that a reader goes through the file once.
    pub(super) fn new(path: String, text: String, mut list: Vec<Mistake>) -> Self {
        list.sort_by_key(|mistake| mistake.span.start);
        Mistakes { path, text, list }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The report with colours, for a terminal.
    #[must_use]
    pub fn styled(&self) -> String {
        self.render(&Renderer::styled())
    }

    fn render(&self, renderer: &Renderer) -> String {
        let shown = self.list.iter().take(limits::CONFIG_MISTAKES);
        let mut report: String =
            shown.map(|mistake| self.render_one(renderer, mistake) + "\n\n").collect();
        let noun = if self.count() == 1 { "mistake" } else { "mistakes" };
        report.push_str(&format!("{} {noun} in {}", self.count(), self.path));
        report
    }

    fn render_one(&self, renderer: &Renderer, mistake: &Mistake) -> String {
        let primary =
            AnnotationKind::Primary.span(self.within(&mistake.span)).label(&mistake.label);
        let mut snippet = Snippet::source(&self.text).path(&self.path).annotation(primary);
        if let Some((span, label)) = &mistake.context {
            let context = AnnotationKind::Context.span(self.within(span)).label(label);
            snippet = snippet.annotation(context);
        }
        let mut group = Level::ERROR.primary_title(&mistake.title).element(snippet);
        if let Some(help) = &mistake.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }

    /// The part of a span that lies in the file, on whole characters.
    fn within(&self, span: &Range<usize>) -> Range<usize> {
        let start = self.text.floor_char_boundary(span.start);
        start..self.text.floor_char_boundary(span.end).max(start)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Renderer::plain()))
    }
}

impl std::error::Error for Mistakes {}
