//! The calls of a run on several file systems: a table with a row for each, then what differs there.

use iowhy_core::units::{count, estimate, time};
use iowhy_view::document::{Cell, Chapter, Detail, Part, Section, Table};

use super::figures::factor;
use crate::record::replay::{Elsewhere, Place, ReplayRecord};

/// The chapter.
pub fn chapter(record: &ReplayRecord, detail: Detail) -> Chapter {
    let mut chapter = Chapter {
        title: format!("replayed elsewhere: {}", record.subject),
        sections: sections(&record.elsewhere),
        ..Chapter::default()
    };
    if detail.is_page() {
        chapter.facts = vec![record.command.clone(), format!("iowhy {}", record.iowhy)];
        chapter.sections.extend(super::surroundings::warnings(&record.warnings));
    }
    chapter
}

fn sections(elsewhere: &Elsewhere) -> Vec<Section> {
    let part = match elsewhere.scale {
        s if s < 1.05 => "all of the run".to_owned(),
        s => format!("1 in {} of the run", factor(s)),
    };
    let line = format!(
        "{} calls, {part}; the program took {} in its calls, of {} wall time",
        count(elsewhere.calls),
        time(elsewhere.program_io_s * 1e9),
        time(elsewhere.program_s * 1e9)
    );
    let mut first = vec![Part::Remarks(vec![line])];
    if !elsewhere.notes.is_empty() {
        first.push(Part::List(elsewhere.notes.clone()));
    }
    let mut second = vec![Part::Table(table(elsewhere))];
    second.extend(elsewhere.places.iter().flat_map(differs).map(Part::Text));
    second.push(Part::Note(
        "time in calls: of one replay, without the program's own time; run there: wall time of the whole run with these times in its \
         calls, and everything else the same; 95 % interval"
            .to_owned(),
    ));
    second.push(Part::Note(
        "scratch files are new: the layout of an old file, its bytes, and a file system that is nearly full are not replayed".to_owned(),
    ));
    vec![Section::quiet("The recorded calls, in turn in each place", first), Section::new("", second)]
}

fn table(elsewhere: &Elsewhere) -> Table {
    let headings = ["place", "time in calls", "over recorded", "over where it ran", "run there"];
    let mut table = Table::new(headings);
    for place in &elsewhere.places {
        let figure = |text: Option<String>| text.map_or_else(|| Cell::from("-"), Cell::from);
        let ratio = |e: &iowhy_core::estimate::Estimate| {
            format!("{}x [{}, {}]", factor(e.value), factor(e.low), factor(e.high))
        };
        table.row([
            Cell::from(name(place)),
            figure(place.io.as_ref().map(estimate)),
            figure(place.over_recorded.as_ref().map(ratio)),
            figure(place.over_here.as_ref().map(ratio)),
            figure(place.wall.as_ref().map(estimate)),
        ]);
    }
    table
}

fn name(place: &Place) -> String {
    match (&place.directory, &place.file_system) {
        (None, _) => "where it ran".to_owned(),
        (Some(directory), None) => directory.clone(),
        (Some(directory), Some(file_system)) => format!("{directory} ({file_system})"),
    }
}

/// What differs in a place, and why it has no figures.
fn differs(place: &Place) -> Vec<String> {
    let words = place.reason.iter().chain(&place.hint).chain(&place.notes);
    words.map(|words| format!("{}: {words}", name(place))).collect()
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::{Estimate, Unit};
    use iowhy_view::terminal::{self, sparkline::Marks};

    use super::*;

    fn screen(elsewhere: Elsewhere) -> String {
        let chapter = Chapter { sections: sections(&elsewhere), ..Chapter::default() };
        let text = terminal::screen(&chapter, 120, Marks::Blocks);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn each_place_has_its_times_or_its_reason() {
        let of = |value, unit| Some(Estimate { value, low: 0.9 * value, high: 1.1 * value, unit, n: 9 });
        let here =
            Place { io: of(2e6, Unit::Nanoseconds), over_recorded: of(1.0, Unit::Ratio), ..Place::default() };
        let there = Place {
            directory: Some("/mnt/disk".to_owned()),
            file_system: Some("xfs".to_owned()),
            over_here: of(4.0, Unit::Ratio),
            wall: of(3e9, Unit::Nanoseconds),
            notes: vec!["without the limits".to_owned()],
            ..here.clone()
        };
        let full = Place {
            directory: Some("/full".to_owned()),
            reason: Some("too little room".to_owned()),
            ..Place::default()
        };
        let places = vec![here, there, full];
        let text =
            screen(Elsewhere { calls: 1234, scale: 1.0, program_s: 1.0, places, ..Elsewhere::default() });
        assert!(text.contains("1,234 calls, all of the run"), "{text}");
        for (name, wanted) in [
            ("/mnt/disk (xfs)  ", "4.0x [3.6, 4.4]"),
            ("/full  ", "-"),
            ("where it ran  ", "1.00x [0.90, 1.10]"),
        ] {
            let row =
                text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            assert!(row.contains(wanted), "{row}");
        }
        assert!(
            text.contains("/full: too little room") && text.contains("/mnt/disk (xfs): without the limits"),
            "{text}"
        );
    }
}
