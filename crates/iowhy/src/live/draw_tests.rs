//! The live view of scripted machines on false terminals of several sizes.

use ratatui_core::backend::TestBackend;
use ratatui_core::style::Modifier;
use ratatui_core::terminal::Terminal;

use super::draw::{Shown, draw};
use super::keys::Key;
use super::view::View;
use crate::record::whole_machine::WholeMachineRecord;
use crate::screen::for_tests::assert_expected;
use crate::screen::whole_machine::machine_tests::{busy, idle};

const SIZES: [(u16, u16); 2] = [(80, 24), (100, 30)];

fn drawn(record: Option<&WholeMachineRecord>, keys: &[Key], (width, height): (u16, u16)) -> TestBackend {
    let mut view = View::default();
    keys.iter().for_each(|key| {
        view.press(*key, record);
    });
    let shown = Shown { record, limits: &[], watched_ns: 63_000_000_000 };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| _ = draw(frame.buffer_mut(), &shown, &view)).unwrap();
    terminal.backend().clone()
}

/// The lines of a terminal, without blanks at their ends.
fn text(of: &TestBackend) -> String {
    let area = of.buffer().area;
    let line = |y| -> String { (0..area.width).map(|x| of.buffer()[(x, y)].symbol()).collect() };
    (0..area.height).map(|y| format!("{}\n", line(y).trim_end())).collect()
}

#[test]
fn pages_are_as_expected() {
    let (busy, idle) = (busy(), idle());
    for size @ (width, _) in SIZES {
        for (name, record, keys) in [
            ("busy", &busy, &[][..]),
            ("by-bytes", &busy, &[Key::Char('s'), Key::Char('s'), Key::Down]),
            ("process", &busy, &[Key::Enter]),
            ("help", &busy, &[Key::Char('?')]),
            ("idle", &idle, &[]),
        ] {
            let terminal = drawn(Some(record), keys, size);
            assert_expected(&format!("live-{name}-{width}.txt"), &text(&terminal));
        }
    }
}

#[test]
fn the_selected_row_is_marked_by_a_character_and_by_style() {
    let terminal = drawn(Some(&busy()), &[Key::Down], (80, 24));
    let lines = text(&terminal);
    let y = lines.lines().position(|line| line.starts_with("> backup")).expect("it is marked") as u16;
    let reversed = |y: u16| terminal.buffer()[(40, y)].modifier.contains(Modifier::REVERSED);
    assert!(reversed(y) && !reversed(y - 1) && !reversed(y + 1), "{lines}");
}

#[test]
fn what_has_no_room_is_named() {
    let lines = text(&drawn(Some(&busy()), &[], (80, 14)));
    let missing = lines.lines().find(|line| line.starts_with("no room for")).expect("it is said");
    assert!(missing.contains("1 device"), "{lines}");
    assert!(lines.contains("> postgres"), "processes come first: {lines}");
    // The selected row is among those that are seen.
    let lines = text(&drawn(Some(&busy()), &[Key::PageDown], (80, 14)));
    assert!(lines.contains("> kernel jbd2"), "{lines}");
    assert!(!text(&drawn(Some(&busy()), &[], (100, 40))).contains("no room"), "there is room for all");
}

#[test]
fn no_size_breaks_it_and_a_tiny_one_says_what_is_missing() {
    let busy = busy();
    for keys in [&[][..], &[Key::Enter], &[Key::Char('?')], &[Key::PageDown]] {
        for width in [1, 5, 39, 40, 41, 60, 79, 200] {
            for height in [1, 2, 9, 10, 11, 12, 13, 20, 70] {
                drawn(Some(&busy), keys, (width, height));
                drawn(None, keys, (width, height));
            }
        }
    }
    let tiny = text(&drawn(Some(&busy), &[], (38, 8)));
    assert!(tiny.contains("38x8: 40x10 show more") && tiny.contains("backup (2211) causes 59 %"), "{tiny}");
}

#[test]
fn an_account_is_scrolled_to_its_end_and_no_further() {
    let busy = busy();
    let ends = |pages: usize| {
        let mut keys = vec![Key::Enter];
        keys.extend(vec![Key::PageDown; pages]);
        text(&drawn(Some(&busy), &keys, (80, 12)))
    };
    assert!(ends(20).contains("sudo iowhy attach 1873"), "{}", ends(20));
    assert_eq!(ends(20), ends(40));
}

#[test]
fn a_name_that_a_program_chose_is_no_control_code() {
    let mut busy = busy();
    busy.profile.subjects[1].name = "\u{1b}[2J\n\t".to_owned();
    for keys in [&[][..], &[Key::Enter]] {
        let lines = text(&drawn(Some(&busy), keys, (100, 30)));
        assert!(!lines.contains('\u{1b}') && lines.lines().count() == 30, "{lines}");
    }
}
