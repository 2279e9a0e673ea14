//! From a chapter to the text of a screen. Sections are a blank line apart; no line of a paragraph or a table with shapes
//! is wider than the terminal.

use anstyle::{AnsiColor, Style};
use iowhy_core::layer::Layer;
use iowhy_core::text::visible;

use super::bar;
use super::sparkline::{self, Marks};
use super::table::{Align, layout, visible_width};
use super::wrap::{MAX_WIDTH, MIN_WIDTH, cut, cut_path, flow, wrap};
use crate::document::{Cell, Chapter, Cut, Part, Section, Shape, Split, Table};

const BOLD: Style = Style::new().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
const DIM: Style = Style::new().dimmed();
/// Columns of the labels of [`Part::Facts`], at least.
const LABEL: usize = 11;
/// A status up to this length stays beside its title.
const MAX_STATUS: usize = 34;
/// A text is set beside its lead where this much of it fits there.
const MIN_BESIDE: usize = 24;
/// The first column of a table is cut to no less than this.
const MIN_FIRST: usize = 8;
/// A table as it is.
static WHOLE: Shape = Shape { bar: 22, items: usize::MAX, without: Vec::new() };

/// The screen for a terminal of `width` columns.
pub fn screen(chapter: &Chapter, width: usize, marks: Marks) -> String {
    let narrow = width.clamp(MIN_WIDTH, MAX_WIDTH);
    let mut blocks = vec![heading(chapter, narrow)];
    let section = |section: &Section| self::section(section, width, narrow, marks);
    blocks.extend(chapter.sections.iter().map(section));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

fn heading(chapter: &Chapter, width: usize) -> String {
    if chapter.title.is_empty() {
        return String::new();
    }
    let about = match chapter.about.as_str() {
        "" => String::new(),
        about => format!("  {about}"),
    };
    // A title too long for a short status gives way; a long description takes a line of its own.
    let room = width.saturating_sub(about.chars().count());
    let beside = chapter.title.chars().count() <= room || about.chars().count() <= MAX_STATUS;
    let mut text = if beside && room > 0 {
        format!("{BOLD}{}{BOLD:#}{about}\n", cut(&chapter.title, room))
    } else {
        let about = wrap(&about, width, "  ", "  ");
        format!("{BOLD}{}{BOLD:#}\n{about}", cut(&chapter.title, width))
    };
    chapter.facts.iter().for_each(|fact| text.push_str(&wrap(fact, width, "  ", "  ")));
    text
}

fn section(section: &Section, width: usize, narrow: usize, marks: Marks) -> String {
    let mut text = String::new();
    for part in &section.parts {
        text.push_str(&inner_part(part, width, narrow, marks));
    }
    if text.is_empty() || section.quiet || section.title.is_empty() {
        return text;
    }
    styled(BOLD, &wrap(&section.title, narrow, "", "  ")) + &text
}

/// A piece of a screen, for a terminal of `width` columns.
pub fn part(part: &Part, width: usize, marks: Marks) -> String {
    inner_part(part, width, width.clamp(MIN_WIDTH, MAX_WIDTH), marks)
}

fn styled(style: Style, text: &str) -> String {
    text.lines().map(|line| format!("{style}{line}{style:#}\n")).collect()
}

fn inner_part(part: &Part, width: usize, narrow: usize, marks: Marks) -> String {
    let lines = |items: &[String], first: &str, rest: &str| -> String {
        items.iter().map(|item| wrap(item, narrow, first, rest)).collect()
    };
    match part {
        Part::Verdict(verdict) => styled(BOLD, &wrap(verdict, narrow, "", "  ")),
        Part::Lead(lead, text) => {
            let lead = visible(lead);
            let room = narrow.saturating_sub(visible_width(&lead) + 2);
            let whole = if room >= visible_width(text).min(MIN_BESIDE) {
                wrap(text, narrow, &format!("{lead}  "), "  ")
            } else {
                format!("{}{}", wrap(&lead, narrow, "", "  "), wrap(text, narrow, "  ", "  "))
            };
            whole.replacen(lead.as_ref(), &format!("{BOLD}{lead}{BOLD:#}"), 1)
        }
        Part::Text(text) => wrap(text, narrow, "", "  "),
        Part::Note(text) => styled(DIM, &wrap(text, narrow, "", "  ")),
        Part::List(items) => lines(items, "  - ", "    "),
        Part::Remarks(items) => lines(items, "  ", "    "),
        Part::Advice(text) => wrap(text, narrow, "  > ", "    "),
        Part::Command(command) => wrap(command, usize::MAX, "  > ", ""),
        Part::Facts(facts) => {
            let longest = facts.iter().map(|(label, _)| label.chars().count() + 1).max();
            let column = longest.unwrap_or(0).max(LABEL);
            let line = |(label, fact): &(String, String)| {
                wrap(fact, narrow, &format!("{label:<column$}"), &" ".repeat(column))
            };
            facts.iter().map(line).collect()
        }
        Part::Table(table) if table.bars().next().is_some() => {
            let pieces = table.rows.iter().flatten().filter_map(Cell::pieces).flatten();
            self::table(table, narrow) + &bar::legend(pieces, narrow)
        }
        Part::Table(table) if table.keys > 0 => folded(table, narrow),
        Part::Table(table) if table.shapes.is_empty() && table.cut.is_none() => self::table(table, width),
        Part::Table(table) => self::table(table, narrow),
        Part::Split(split) => self::split(split, narrow),
        Part::Layers(cells) => cells
            .iter()
            .map(|(name, layers)| {
                let key = |(layer, time): &(Layer, String)| {
                    format!("{} {time}", bar::layer_key(*layer, layer.id()))
                };
                let keys: Vec<String> = layers.iter().map(key).collect();
                format!("  {}\n{}", visible(name), flow(&keys, narrow, "    "))
            })
            .collect(),
        Part::Course(text, rounds) => {
            let picture = sparkline::rounds(rounds, marks);
            let picture = if picture.is_empty() { picture } else { format!("    {picture}\n") };
            wrap(text, narrow, "  ", "    ") + &picture
        }
        Part::Spread(spread) => {
            let rows: Vec<_> = spread.rows.iter().map(|(name, all)| (name.clone(), all)).collect();
            sparkline::table(&rows, spread.percentiles, width, marks)
        }
        Part::Chart(chart) => self::table(&chart.table, width),
        Part::Plot(plot) => super::plot::plot(plot, narrow),
        Part::Charts(charts) => charts.iter().map(|chart| self::table(&chart.table, width)).collect(),
    }
}

fn split(split: &Split, width: usize) -> String {
    let bar = bar::bar(&split.pieces, width.saturating_sub(split.label.chars().count() + 2));
    let key = |(layer, name, share): &(Option<Layer>, String, String)| match layer {
        Some(layer) => format!("{} {share}", bar::layer_key(*layer, name)),
        None => format!("{name} {share}"),
    };
    let keys: Vec<String> = split.legend.iter().map(key).collect();
    format!("{}  {bar}\n{}", split.label, flow(&keys, width, "  "))
}

/// As many columns beside each other as fit, behind those that name the rows; the others below.
fn folded(table: &Table, width: usize) -> String {
    let whole = shaped(table, &WHOLE, usize::MAX);
    if widest(&whole) <= width {
        return whole;
    }
    let keys: Vec<usize> = (0..table.keys).collect();
    let mut text = String::new();
    let mut from = table.keys;
    while from < table.columns.len() {
        let upto = |to: usize| {
            let columns: Vec<usize> = keys.iter().copied().chain(from..to).collect();
            shaped(&table.select(&columns), &WHOLE, usize::MAX)
        };
        let fits = |to: &usize| widest(&upto(*to)) <= width;
        let to = (from + 2..=table.columns.len()).take_while(fits).last().unwrap_or(from + 1);
        text.push_str(&upto(to));
        from = to;
    }
    text
}

/// The first shape that fits; else the last, with a first column that gives way.
fn table(table: &Table, width: usize) -> String {
    if table.prose {
        return prose(table, width);
    }
    let shapes = if table.shapes.is_empty() { std::slice::from_ref(&WHOLE) } else { &table.shapes };
    let mut text = String::new();
    for shape in shapes {
        text = shaped(table, shape, usize::MAX);
        if widest(&text) <= width {
            return text;
        }
    }
    if table.cut.is_none() {
        return text;
    }
    let shape = shapes.last().unwrap_or(&WHOLE);
    let mut room = width;
    loop {
        let text = shaped(table, shape, room);
        let over = widest(&text).saturating_sub(width);
        if over == 0 {
            return text;
        }
        if room <= MIN_FIRST {
            return text.lines().map(|line| format!("{}\n", cut(line, width))).collect();
        }
        // The column may be narrower than its room: start from what it can take at most.
        room = room.min(width).saturating_sub(over.min(room - MIN_FIRST).max(1)).max(MIN_FIRST);
    }
}

/// The last column in lines beside the others; below them where little room is left.
fn prose(table: &Table, width: usize) -> String {
    let Some(last) = table.columns.len().checked_sub(1) else { return String::new() };
    let columns: Vec<usize> = (0..last).collect();
    let mut others = Table { indent: table.indent, shapes: table.shapes.clone(), ..table.select(&columns) };
    let mut lines = self::table(&others, width.saturating_sub(MIN_BESIDE + 2));
    let beside = width >= widest(&lines) + 2 + MIN_BESIDE;
    if !beside {
        others.cut = table.cut;
        lines = self::table(&others, width);
    }
    let margin = widest(&lines) + 2;
    let texts = std::iter::once(table.columns[last].0.clone())
        .chain(table.rows.iter().map(|row| row.get(last).map(Cell::text).unwrap_or_default()));
    let line = |(line, text): (&str, String)| {
        if text.is_empty() || (!beside && text == table.columns[last].0) {
            return format!("{line}\n");
        }
        if !beside {
            return format!("{line}\n{}", wrap(&text, width, "    ", "    "));
        }
        let gap = " ".repeat(margin - visible_width(line));
        wrap(&text, width, &format!("{line}{gap}"), &" ".repeat(margin))
    };
    lines.lines().zip(texts).map(line).collect()
}

fn widest(text: &str) -> usize {
    text.lines().map(visible_width).max().unwrap_or(0)
}

fn shaped(table: &Table, shape: &Shape, first_room: usize) -> String {
    let shown: Vec<usize> =
        (0..table.columns.len()).filter(|c| !shape.without.contains(&table.columns[*c].0.as_str())).collect();
    let indent = " ".repeat(table.indent);
    let header: Vec<String> = shown.iter().map(|c| table.columns[*c].0.clone()).collect();
    let align: Vec<Align> =
        shown.iter().map(|c| if table.columns[*c].1 { Align::Right } else { Align::Left }).collect();
    let cell = |row: &[Cell], column: usize| {
        let text = match row.get(column) {
            None => String::new(),
            Some(Cell::Bar(pieces)) => bar::bar(pieces, shape.bar),
            Some(Cell::Items(items)) => {
                items.iter().take(shape.items).cloned().collect::<Vec<_>>().join(", ")
            }
            Some(Cell::Long(text)) => cut(text, shape.items),
            Some(Cell::Text(text)) => text.clone(),
            Some(Cell::Good(text)) => format!("{GREEN}{text}{GREEN:#}"),
            Some(Cell::Bad(text)) => format!("{RED}{text}{RED:#}"),
        };
        match (column, table.cut) {
            (0, Some(Cut::End)) => cut(&text, first_room),
            (0, Some(Cut::Start)) => cut_path(&text, first_room),
            _ => text,
        }
    };
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| shown.iter().map(|column| cell(row, *column)).collect()).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let text = layout(&header, &align, &rows);
    if indent.is_empty() { text } else { text.lines().map(|line| format!("{indent}{line}\n")).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        let mut shown = String::new();
        let mut escape = false;
        for c in text.chars() {
            match (escape, c) {
                (false, '\u{1b}') => escape = true,
                (true, 'm') => escape = false,
                (true, _) => {}
                (false, c) => shown.push(c),
            }
        }
        shown
    }

    #[test]
    fn sections_are_a_blank_line_apart_and_headings_may_be_for_pages_only() {
        let chapter = Chapter {
            title: "data.bin".into(),
            about: "file, 4 MiB".into(),
            facts: vec!["ext4".into()],
            sections: vec![
                Section::new("", vec![Part::Verdict("slow".into())]),
                Section::default(),
                Section::new("limits", vec![Part::Lead("limit: depth".into(), "one at a time".into())]),
                Section::quiet("why", vec![Part::List(vec!["x".into()]), Part::Advice("y".into())]),
            ],
        };
        assert_eq!(
            plain(&screen(&chapter, 80, Marks::Blocks)),
            "data.bin  file, 4 MiB\n  ext4\n\nslow\n\nlimits\nlimit: depth  one at a time\n\n  - x\n  > y\n"
        );
    }

    #[test]
    fn prose_is_broken_beside_its_row_or_below_it() {
        let mut table = Table::new(["setting", "value", "meaning"]);
        table.row([
            Cell::from("nomerges"),
            Cell::Bad("2".into()),
            "no request is merged with another".into(),
        ]);
        table.row(["iostats", "1", ""]);
        table.prose = true;
        assert_eq!(
            plain(&super::table(&table, 42)),
            "setting   value  meaning\nnomerges  2      no request is merged with\n                 another\n\
             iostats   1\n"
        );
        assert_eq!(
            plain(&super::table(&table, 40)),
            "setting   value\nnomerges  2\n    no request is merged with another\niostats   1\n"
        );
    }

    #[test]
    fn a_table_takes_the_first_shape_that_fits_and_cuts_its_first_column_last() {
        let mut table = Table::new(["file", "#size", "where"]);
        let items = Cell::Items(vec!["device 80 %".into(), "copy 10 %".into()]);
        table.row([Cell::from("/a/very/long/path/to/data.bin"), "4 MiB".into(), items]);
        table.shapes = vec![
            Shape { bar: 0, items: 2, without: vec![] },
            Shape { bar: 0, items: 1, without: vec![] },
            Shape { bar: 0, items: 1, without: vec!["size"] },
        ];
        table.cut = Some(Cut::Start);
        for width in [70, 55, 45, 30] {
            assert!(widest(&super::table(&table, width)) <= width, "{width}");
        }
        assert!(super::table(&table, 70).contains("device 80 %, copy 10 %"));
        assert!(!super::table(&table, 55).contains("copy") && super::table(&table, 55).contains("4 MiB"));
        assert!(super::table(&table, 30).contains("data.bin") && !super::table(&table, 30).contains("/a/"));
    }

    #[test]
    fn columns_that_do_not_fit_stand_below_behind_their_keys() {
        let mut table = Table::new(["#size", "#fifo", "#lru", "#arc"]);
        table.row(["8 KiB", "0.7483", "0.7323", "0.6683"]);
        table.keys = 1;
        assert_eq!(folded(&table, 80).lines().count(), 2);
        let text = folded(&table, 22);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [" size    fifo     lru", "8 KiB  0.7483  0.7323", " size     arc", "8 KiB  0.6683"]
        );
    }
}
