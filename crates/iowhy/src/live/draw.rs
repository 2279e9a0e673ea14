//! Draws an account onto a buffer: a pure function of account, view and size. Rows are those of the tables of `iowhy --all`. What a small
//! terminal leaves out is named on it.

use iowhy_core::profile::GroupLimit;
use iowhy_core::units;
use iowhy_view::document::{Part, Table};
use iowhy_view::terminal::sparkline::Marks;
use iowhy_view::terminal::wrap::{cut, wrap};
use iowhy_view::terminal::{part, screen};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};

use super::ansi;
use super::view::{View, Who};
use crate::record::whole_machine::WholeMachineRecord;
use crate::screen::figures::percent_of;
use crate::screen::whole_machine::process;
use crate::screen::whole_machine::tables::{causes, culprits, devices, live, processes};
use crate::screen::whole_machine::{group_lines, title, words};

/// Below this nothing but the verdict is drawn.
const MIN_COLUMNS: u16 = 40;
const MIN_LINES: u16 = 10;
/// Columns before the lists: the mark of the selected row.
const MARGIN: u16 = 2;
/// Lines of a verdict, and of other sentences.
const SENTENCE: (usize, usize) = (3, 2);
/// Rows that a table gets before others get more: processes, causes, devices.
const FIRST_ROWS: [usize; 3] = [3, 2, 2];

const KEYS: [(&str, &str); 9] = [
    ("q, Ctrl-C", "leave; the last account is printed as text"),
    ("up, down, k, j", "select a process"),
    ("page up, page down", "ten rows at once"),
    ("Enter", "its own account; up and down scroll it"),
    ("Esc", "back"),
    ("s", "sort by the next of: time waited, longest wait, bytes/s, cpu, queued (runnable without a CPU)"),
    ("p", "pause: the account stays; again: go on"),
    ("Ctrl-Z", "suspend; `fg` comes back"),
    ("?, h", "this page; any key leaves it"),
];

/// What is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown<'a> {
    /// The account; none: the first is not made yet.
    pub(crate) record: Option<&'a WholeMachineRecord>,
    /// Limits of the control groups of the process that is open.
    pub(crate) limits: &'a [GroupLimit],
    /// How long it has been watched.
    pub(crate) watched_ns: u64,
}

/// Draws it. Gives how far the page is scrolled: no further than to its end.
pub(crate) fn draw(buffer: &mut Buffer, shown: &Shown<'_>, view: &View) -> usize {
    let area = buffer.area;
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let Some(record) = shown.record else {
        top(buffer, &["watching the whole machine: the first account comes after a second".to_owned()]);
        return 0;
    };
    if area.width < MIN_COLUMNS || area.height < MIN_LINES {
        let mut lines = sentence(&words::verdict(record), width, height.saturating_sub(1));
        lines.push(format!("{width}x{height}: {MIN_COLUMNS}x{MIN_LINES} show more; q leaves"));
        top(buffer, &lines);
        return 0;
    }
    let keys = match (&view.opened, view.help) {
        (_, true) => "any key: back  q: leave",
        (Some(_), _) => "Esc: back  up, down: scroll  p: pause  ?: help  q: leave",
        (None, _) => "q: leave  up, down: select  Enter: open  s: sort  p: pause  ?: help",
    };
    let lines = match (&view.opened, view.help) {
        (_, true) => help(record, width),
        (Some(who), _) => opened(record, who, shown.limits, width),
        (None, _) => {
            machine(buffer, record, shown, view, keys);
            return 0;
        }
    };
    // The last lines can be scrolled to, and no further.
    let room = height - 2;
    let above = if view.help { 0 } else { view.scrolled.min(lines.len().saturating_sub(room)) };
    let mut all = vec![heading(record, shown, view, width)];
    all.extend(lines.into_iter().skip(above).take(room));
    top(buffer, &all);
    bottom(buffer, keys);
    above
}

/// The page of the machine.
fn machine(buffer: &mut Buffer, record: &WholeMachineRecord, shown: &Shown<'_>, view: &View, keys: &str) {
    let (width, height) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let mut lines = vec![heading(record, shown, view, width)];
    let verdict = sentence(&words::verdict(record), width, SENTENCE.0);
    lines.extend(verdict.into_iter().map(|line| format!("\u{1b}[1m{line}\u{1b}[0m")));
    lines.extend(sentence(&words::pressure(record), width, SENTENCE.1));
    if let Some(group) = &record.group {
        lines.extend(sentence(&group_lines(group).join("; "), width, SENTENCE.1));
    }
    if !record.warnings.is_empty() {
        let n = units::counted(record.warnings.len() as u64, "limitation", "limitations");
        lines.push(format!("not everything was seen: {n}, on the page of `?`"));
    }
    let rows = processes(record, view.by);
    let active = active_devices(record);
    let wanted = [rows.len(), causes(record).len(), active];
    // A line for the keys; one more for what is missing.
    let room = height.saturating_sub(lines.len() + 1);
    let mut given = share(room, wanted);
    let missing = (given != wanted).then(|| {
        given = share(room.saturating_sub(1), wanted);
        missing(wanted, given)
    });
    let selected = view.selected(record, &rows);
    let above = (selected + 1).saturating_sub(given[0]);
    let visible = &rows[above.min(rows.len())..(above + given[0]).min(rows.len())];
    let tables = [live(record, view.by, visible), culprits(record, given[1]), devices(record, given[2])];
    if rows.is_empty() {
        lines.extend([String::new(), "  no process waited, ran or made a request".to_owned()]);
    }
    let mut marked = None;
    for (number, table) in tables.into_iter().enumerate().filter(|(number, _)| given[*number] > 0) {
        lines.push(String::new());
        if number == 0 {
            marked = u16::try_from(lines.len() + 1 + selected - above).ok();
        }
        let margin = " ".repeat(usize::from(MARGIN));
        let text = tabled(table, width - usize::from(MARGIN));
        lines.extend(text.lines().map(|line| format!("{margin}{line}")));
    }
    top(buffer, &lines);
    if let Some(missing) = missing {
        let y = buffer.area.bottom().saturating_sub(2);
        ansi::line(buffer, 0, y, &cut(&missing, width));
    }
    if let Some(y) = marked {
        buffer.set_string(0, y, ">", Style::new());
        buffer.set_style(Rect { y, height: 1, ..buffer.area }, Style::new().add_modifier(Modifier::REVERSED));
    }
    bottom(buffer, keys);
}

/// Subject, time, and what the view is set to.
fn heading(record: &WholeMachineRecord, shown: &Shown<'_>, view: &View, width: usize) -> String {
    let paused = if view.paused { ", PAUSED" } else { "" };
    let (interval, watched) =
        (units::time(record.profile.wall_ns as f64), units::time(shown.watched_ns as f64));
    let own = percent_of(record.profile.cost.own_cpu_ns as f64 / (record.profile.wall_ns as f64).max(1.0));
    cut(
        &format!("{}: the last {interval} of {watched}{paused}; iowhy itself {own} of a CPU", title(record)),
        width,
    )
}

/// How many rows each table gets of so many lines; each has a heading and a line before it.
fn share(room: usize, wanted: [usize; 3]) -> [usize; 3] {
    const FRAME: usize = 2;
    let (mut given, mut left) = ([0; 3], room);
    for (table, first) in FIRST_ROWS.into_iter().enumerate() {
        let rows = wanted[table].min(first).min(left.saturating_sub(FRAME));
        if rows > 0 {
            given[table] = rows;
            left -= rows + FRAME;
        }
    }
    // The list of processes is the longest; it gets every second line.
    for table in [0, 1, 0, 2].into_iter().cycle().take(4 * room) {
        if left > 0 && given[table] > 0 && given[table] < wanted[table] {
            given[table] += 1;
            left -= 1;
        }
    }
    given
}

/// Which rows a terminal has no room for.
fn missing(wanted: [usize; 3], given: [usize; 3]) -> String {
    let names = [("process", "processes"), ("cause", "causes"), ("device", "devices")];
    let parts: Vec<String> = names
        .into_iter()
        .zip(wanted.into_iter().zip(given))
        .filter(|(_, (wanted, given))| wanted > given)
        .map(|((one, several), (wanted, given))| units::counted((wanted - given) as u64, one, several))
        .collect();
    format!("no room for {}: a higher terminal shows more", parts.join(", "))
}

/// Devices that did something or were waited for; they come first in their table.
fn active_devices(record: &WholeMachineRecord) -> usize {
    let is_waited_for = |index: usize| record.account.devices.iter().any(|part| part.of as usize == index);
    let devices = record.profile.devices.iter().enumerate();
    devices.filter(|(index, of)| of.busy_ns > 0 || !of.users.is_empty() || is_waited_for(*index)).count()
}

/// The account of a process.
fn opened(record: &WholeMachineRecord, who: &Who, limits: &[GroupLimit], width: usize) -> Vec<String> {
    let Some(subject) = who.find(record) else {
        let nothing = format!("{} did not wait, run or make a request, or has ended", who.name);
        return sentence(&nothing, width, SENTENCE.0);
    };
    let text = screen(&process::chapter(record, subject, limits), width, Marks::Blocks);
    text.lines().map(str::to_owned).collect()
}

fn help(record: &WholeMachineRecord, width: usize) -> Vec<String> {
    let facts = KEYS.map(|(key, words)| (key.to_owned(), words.to_owned())).into();
    let limitations: Vec<String> = record.warnings.iter().map(|warning| warning.message.clone()).collect();
    let mut parts = vec![Part::Facts(facts), Part::Text(words::cost(record))];
    if !limitations.is_empty() {
        parts.push(Part::Text("limitations of this interval:".to_owned()));
        parts.push(Part::List(limitations));
    }
    let text: String = parts.iter().map(|piece| part(piece, width, Marks::Blocks)).collect();
    text.lines().map(str::to_owned).collect()
}

fn tabled(table: Table, width: usize) -> String {
    part(&Part::Table(table.without_empty_columns()), width, Marks::Blocks)
}

/// A sentence in so many lines at most; the last one is cut.
fn sentence(text: &str, width: usize, lines: usize) -> Vec<String> {
    let wrapped = wrap(text, width, "", "  ");
    let mut all: Vec<String> = wrapped.lines().map(str::to_owned).collect();
    if all.len() > lines {
        all.truncate(lines);
        if let Some(last) = all.last_mut() {
            *last = cut(&format!("{last} ..."), width);
        }
    }
    all
}

/// Lines from the top on.
fn top(buffer: &mut Buffer, lines: &[String]) {
    for (y, line) in (buffer.area.top()..buffer.area.bottom()).zip(lines) {
        ansi::line(buffer, buffer.area.x, y, line);
    }
}

/// The line at the bottom.
fn bottom(buffer: &mut Buffer, text: &str) {
    let y = buffer.area.bottom().saturating_sub(1);
    ansi::line(buffer, buffer.area.x, y, &format!("\u{1b}[2m{text}\u{1b}[0m"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_fit_the_room_and_none_is_given_that_nobody_wants(
            room in 0_usize..80,
            wanted in prop::array::uniform3(0_usize..40),
        ) {
            let given = share(room, wanted);
            let lines: usize = given.iter().filter(|rows| **rows > 0).map(|rows| rows + 2).sum();
            prop_assert!(lines <= room, "{:?}", given);
            prop_assert!(given.iter().zip(&wanted).all(|(given, wanted)| given <= wanted));
            let whole: usize = wanted.iter().filter(|rows| **rows > 0).map(|rows| rows + 2).sum();
            prop_assert!(whole > room || given == wanted, "{:?} of {:?}", given, wanted);
            if wanted[0] > 0 && room >= 3 {
                prop_assert!(given[0] > 0, "processes come first");
            }
        }
    }
}
