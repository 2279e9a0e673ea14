//! How work was spread over the members of a stripe or the devices under a volume: one line a cell.

use iowhy_core::text::visible;
use iowhy_view::document::{Part, Section, Table};

use crate::record::member::MemberRecord;

/// More members than this are shown by the least and the most of them.
const MAX_IN_A_ROW: usize = 6;

/// A table over cells, each with its members; empty when none has any.
pub(crate) fn section(cells: &[(String, &[MemberRecord])]) -> Section {
    let moved = |member: &MemberRecord| member.moved().is_none_or(|bytes| bytes > 0);
    let cells: Vec<&(String, &[MemberRecord])> =
        cells.iter().filter(|(_, members)| members.iter().any(moved)).collect();
    let Some((_, first)) = cells.first() else { return Section::default() };
    let mut table = Table::new(["cell", "#bytes", "#most / mean", "#requests", "#busy"]);
    cells.iter().for_each(|(name, members)| table.row(row(name, members)));
    let name = |(index, member): (usize, &MemberRecord)| format!("{} {}", index + 1, visible(&member.name));
    let names: Vec<String> = first.iter().enumerate().map(name).collect();
    let sent = first.iter().all(|member| member.bytes.is_some());
    let what = if sent { "sent to each member" } else { "moved by each device" };
    let legend = format!(
        "bytes and requests {what}, in order: {}; busy: share of the time in which its device had a request in flight",
        names.join(", ")
    );
    Section::new("members", vec![Part::Table(table), Part::Note(legend)])
}

fn row(name: &str, members: &[MemberRecord]) -> Vec<String> {
    let all =
        |of: &dyn Fn(&MemberRecord) -> Option<f64>| members.iter().map(of).collect::<Option<Vec<f64>>>();
    let moved = all(&|member| member.moved().map(|bytes| bytes as f64));
    let total: f64 = moved.iter().flatten().sum();
    let bytes = match &moved {
        Some(moved) if total > 0.0 => percents(moved.iter().map(|bytes| bytes / total)),
        Some(_) => "none".to_owned(),
        None => "-".to_owned(),
    };
    let requests = all(&|member| member.requests.or(member.device_requests).map(|count| count as f64));
    vec![
        name.to_owned(),
        bytes,
        moved.as_deref().and_then(imbalance).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        requests.map_or_else(|| "-".to_owned(), |requests| listed(&requests, |count| format!("{count:.0}"))),
        all(&|member| member.device_busy_share)
            .map_or_else(|| "-".to_owned(), |busy| percents(busy.into_iter())),
    ]
}

/// The most over the mean; `None` when nothing was moved.
fn imbalance(moved: &[f64]) -> Option<f64> {
    let total: f64 = moved.iter().sum();
    let most = moved.iter().copied().fold(0.0, f64::max);
    (total > 0.0).then(|| most * moved.len() as f64 / total)
}

fn percents(shares: impl Iterator<Item = f64>) -> String {
    format!(
        "{} %",
        listed(&shares.map(|share| share * 100.0).collect::<Vec<_>>(), |share| format!("{share:.0}"))
    )
}

/// `33 / 34 / 33`, or `3 to 90` where they are many.
pub(crate) fn listed(values: &[f64], show: impl Fn(f64) -> String) -> String {
    if values.len() <= MAX_IN_A_ROW {
        return values.iter().map(|value| show(*value)).collect::<Vec<_>>().join(" / ");
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{} to {}", show(least), show(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(cells: &[(String, &[MemberRecord])]) -> String {
        let chapter = iowhy_view::document::Chapter { sections: vec![section(cells)], ..Default::default() };
        crate::screen::text(&chapter, 100)
    }

    fn member(name: &str, bytes: u64, busy: Option<f64>) -> MemberRecord {
        MemberRecord {
            name: name.into(),
            requests: Some(bytes / 4096),
            bytes: Some(bytes),
            device_requests: None,
            device_bytes: None,
            device_busy_share: busy,
        }
    }

    #[test]
    fn shares_imbalance_and_unknowns() {
        let members = [member("a", 3 * 4096, Some(0.5)), member("b", 4096, None)];
        let text = shown(&[("pread cold".into(), &members[..]), ("nothing".into(), &[])]);
        let row = text.lines().find(|line| line.starts_with("pread")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>().join(" "), "pread cold 75 / 25 % 1.50 3 / 1 -");
        assert!(section(&[("nothing".into(), &[])]).is_empty());
    }

    #[test]
    fn many_members_are_shown_by_their_ends() {
        let members: Vec<MemberRecord> = (1..=9).map(|n| member("m", n * 4096, Some(0.1))).collect();
        assert!(shown(&[("c".into(), &members)]).contains("2 to 20 %"));
        assert_eq!(imbalance(&[0.0, 0.0]), None);
    }
}
