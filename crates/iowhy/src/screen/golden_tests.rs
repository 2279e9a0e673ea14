//! Screens of the records that earlier versions made, as made and with every estimate 0, at several widths: no figure on
//! them is a division by nothing. Records whose screens are made of what is not in them (simulations, classics) are looked
//! at as reports, by the tests of the binary.

use std::path::Path;

use iowhy_core::estimate::Estimate;
use serde_json::Value;

use super::measured::{bench, path};
use crate::record::Record;
use crate::record::prove::ProveRecord;
use crate::record::stripe_advice::AdviceRecord;
use crate::record::tree::TreeRecord;
use crate::record::watch::WatchRecord;
use crate::screen::{prove, stripe, tree, watch};
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
        "advice" => {
            let record: AdviceRecord = serde_json::from_value(value).unwrap();
            WIDTHS
                .map(|width| screen(&stripe::advice(&record, Detail::Screen), width, Marks::Blocks))
                .to_vec()
        }
        "tree" => {
            let record: TreeRecord = serde_json::from_value(value).unwrap();
            WIDTHS.map(|width| screen(&tree::chapter(&record, Detail::Screen), width, Marks::Blocks)).to_vec()
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
    for name in ["watched", "proof", "path", "measured", "measured-layers", "advice", "tree"] {
        for value in [golden(name), of_nothing(golden(name))] {
            for screen in screens(name, value) {
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

#[test]
fn tables_of_stripes_and_small_files_fit_the_width() {
    for name in ["advice", "tree"] {
        for (width, screen) in WIDTHS.into_iter().zip(screens(name, golden(name))).skip(2) {
            let screen = anstream::adapter::strip_str(&screen).to_string();
            assert!(screen.lines().all(|line| line.chars().count() <= width), "{width}: {screen}");
        }
    }
}
