//! Screens of the records that earlier versions made, as made and with every estimate 0, at several widths: no figure on
//! them is a division by nothing. Records whose screens are made of what is not in them (simulations, classics) are looked
//! at as reports, by the tests of the binary.

use std::path::Path;

use iowhy_core::estimate::Estimate;
use serde_json::Value;

use super::measured::{bench, path};
use crate::record::Record;
use crate::record::prove::ProveRecord;
use crate::record::watch::WatchRecord;
use crate::screen::{prove, watch};
use iowhy_view::document::Detail;
use iowhy_view::terminal::screen;
use iowhy_view::terminal::sparkline::Marks;

const WIDTHS: [usize; 5] = [40, 60, 80, 100, 200];

fn golden(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/records/1");
    serde_json::from_slice(&std::fs::read(folder.join(format!("{name}.json"))).unwrap()).unwrap()
}

/// Every estimate of it is 0.
fn of_nothing(mut value: Value) -> Value {
    fn empty(value: &mut Value) {
        match value {
            Value::Object(entries) => {
                if let Ok(estimate) = serde_json::from_value::<Estimate>(Value::Object(entries.clone())) {
                    let nothing = Estimate { value: 0.0, low: 0.0, high: 0.0, ..estimate };
                    if let Value::Object(nothing) = serde_json::to_value(nothing).unwrap() {
                        entries.extend(nothing);
                    }
                }
                entries.values_mut().for_each(empty);
            }
            Value::Array(entries) => entries.iter_mut().for_each(empty),
            _ => {}
        }
    }
    empty(&mut value);
    value
}

fn screens(name: &str, value: Value) -> Vec<String> {
    match name {
        "watched" => {
            let record: WatchRecord = serde_json::from_value(value).unwrap();
            WIDTHS
                .map(|width| screen(&watch::chapter(&record, Detail::Screen), width, Marks::Blocks))
                .to_vec()
        }
        "proof" => {
            let record: ProveRecord = serde_json::from_value(value).unwrap();
            WIDTHS
                .map(|width| screen(&prove::chapter(&record, Detail::Screen), width, Marks::Blocks))
                .to_vec()
        }
        _ => {
            let record: Record = serde_json::from_value(value).unwrap();
            let both = |width| {
                screen(&path::chapter(&record, Detail::Verbose), width, Marks::Blocks)
                    + &screen(&bench::chapter(&record, true, Detail::Screen), width, Marks::Letters)
            };
            WIDTHS.map(both).to_vec()
        }
    }
}

#[test]
fn no_screen_shows_a_figure_that_is_no_number() {
    for name in ["watched", "proof", "path", "measured", "measured-layers"] {
        for value in [golden(name), of_nothing(golden(name))] {
            for (i, screen) in screens(name, value).into_iter().enumerate() {
                if let Ok(d) = std::env::var("SNAPV") {
                    use std::io::Write;
                    writeln!(
                        std::fs::OpenOptions::new()
                            .append(true)
                            .create(true)
                            .open(format!("{d}/{name}-{}", WIDTHS[i]))
                            .unwrap(),
                        "{screen}\n====="
                    )
                    .unwrap();
                }
                let screen = anstream::adapter::strip_str(&screen).to_string();
                assert!(screen.lines().count() > 3, "{name}: {screen}");
                for line in screen.lines() {
                    let words = || line.split(|c: char| !c.is_ascii_alphanumeric());
                    assert!(!words().any(|word| matches!(word, "NaN" | "nan" | "inf")), "{name}: {line}");
                    let zeros = ["-0 %", "-0.0 %", "-0.00 %"];
                    assert!(!zeros.iter().any(|zero| line.contains(zero)), "{name}: {line}");
                }
            }
        }
    }
}
