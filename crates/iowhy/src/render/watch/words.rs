//! Numbers, names and paragraphs as they are written on this screen.

use iowhy_core::units::Bytes;

use crate::record::watch::{CallSite, LayerShare, OperationRecord};
use crate::render::table::visible_width;

/// A share below this is written as 0 and left out.
const VISIBLE: f64 = 0.0005;

/// Whether a share is large enough to be written.
pub(super) fn visible(share: f64) -> bool {
    share >= VISIBLE
}

/// What has a share with an interval.
pub(super) trait Share {
    /// Value, lower and upper end.
    fn ends(&self) -> (f64, f64, f64);
}

macro_rules! shares {
    ($($kind:ty),+) => {
        $(impl Share for $kind {
            fn ends(&self) -> (f64, f64, f64) {
                (self.share, self.share_low, self.share_high)
            }
        })+
    };
}
shares!(LayerShare, OperationRecord, CallSite);

/// A share in per cent: `62 %` when it was measured, `62 ±3 %` when it was sampled. The arm is the longer one, in per
/// cent of the whole and rounded up, so that certainty is never overstated.
pub(super) fn share(of: &impl Share) -> String {
    let (value, low, high) = of.ends();
    let (percent, arm) = (value * 100.0, (value - low).max(high - value) * 100.0 - 1e-9);
    if arm <= 0.0 {
        return percent_of(value);
    }
    if percent >= 10.0 || arm >= 1.0 {
        return format!("{percent:.0} ±{:.0} %", arm.ceil());
    }
    format!("{percent:.1} ±{:.1} %", (arm * 10.0).ceil() / 10.0)
}

/// An exact share in per cent: whole from 10 on, tenths below.
pub(super) fn percent_of(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 9.95 { format!("{percent:.0} %") } else { format!("{:.1} %", percent + 0.0) }
}

/// A count in groups of three: `12,345`.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun.
pub(super) fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A size of three digits or so: exact where it is a round number, else to one decimal.
pub(super) fn bytes(n: u64) -> String {
    const STEPS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return Bytes(n).to_string();
    }
    let mut value = n as f64 / 1024.0;
    let mut step = 0;
    while value >= 999.5 && step + 1 < STEPS.len() {
        value /= 1024.0;
        step += 1;
    }
    let exact = value.fract() == 0.0 || value >= 99.95;
    if exact { format!("{value:.0} {}", STEPS[step]) } else { format!("{value:.1} {}", STEPS[step]) }
}

/// A factor to the digits that matter: `11x`, `2.3x`, `1.08x`.
pub(super) fn factor(x: f64) -> String {
    let decimals = if x >= 9.95 {
        0
    } else if x >= 1.995 {
        1
    } else {
        2
    };
    format!("{x:.decimals$}")
}

/// A text cut to `room` characters, its end replaced; control characters do not reach the terminal.
pub(super) fn cut(text: &str, room: usize) -> String {
    let clean = clean(text);
    if clean.chars().count() <= room {
        return clean;
    }
    let mut kept: String = clean.chars().take(room.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// A path cut to `room` characters: its beginning gives way, the name stays.
pub(super) fn cut_path(path: &str, room: usize) -> String {
    let clean = clean(path);
    let length = clean.chars().count();
    if length <= room {
        return clean;
    }
    let kept: String = clean.chars().skip(length - room.saturating_sub(1)).collect();
    format!("…{kept}")
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A paragraph of lines no wider than `width`, broken at spaces; a word that is too long alone is cut over lines.
pub(super) fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let text = clean(text);
    let mut lines: Vec<String> = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for mut word in words(&text) {
        loop {
            let gap = usize::from(!empty);
            if visible_width(&line) + gap + visible_width(&word) <= width {
                line.push_str(if empty { "" } else { " " });
                line.push_str(&word);
                empty = false;
                break;
            }
            if empty {
                // Longer than a whole line.
                let room = width.saturating_sub(visible_width(&line)).max(1);
                line.extend(word.chars().take(room));
                word = word.chars().skip(room).collect();
            }
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
            if word.is_empty() {
                break;
            }
        }
    }
    if !empty || lines.is_empty() {
        lines.push(line);
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The words of a text; a unit stays with its number.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 12] = ["%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "CPU", "CPUs"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = UNITS.contains(&word.trim_end_matches([',', ';', ')', '.', ':']));
        match words.last_mut() {
            Some(last) if unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Items two spaces apart, as many on a line as fit; items may hold colour.
pub(super) fn flow(items: &[String], width: usize, indent: &str) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for item in items {
        if !line.is_empty() && visible_width(&line) + 2 + visible_width(item) > width {
            text.push_str(&line);
            text.push('\n');
            line.clear();
        }
        line.push_str(if line.is_empty() { indent } else { "  " });
        line.push_str(item);
    }
    if !line.is_empty() {
        text.push_str(&line);
        text.push('\n');
    }
    text
}
