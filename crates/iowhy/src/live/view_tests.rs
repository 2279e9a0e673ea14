//! Keys and what they lead to.

use super::keys::Key;
use super::view::{Action, View};
use crate::record::whole_machine::WholeMachineRecord;
use crate::screen::whole_machine::machine_tests::{busy, idle};
use crate::screen::whole_machine::tables::{Column, processes};

/// The name of the selected process.
fn selected(view: &View, record: &WholeMachineRecord) -> String {
    let rows = processes(record, view.by);
    let row = rows[view.selected(record, &rows)];
    record.profile.subjects[row.subject as usize].name.clone()
}

fn pressed(keys: &[Key], record: &WholeMachineRecord) -> View {
    let mut view = View::default();
    for key in keys {
        assert_eq!(view.press(*key, Some(record)), Action::Nothing, "{key:?}");
    }
    view
}

#[test]
fn the_selection_goes_up_and_down_and_stays_inside() {
    let busy = busy();
    for (keys, expected) in [
        (&[][..], "postgres"),
        (&[Key::Down], "backup"),
        (&[Key::Down, Key::Down, Key::Up], "backup"),
        (&[Key::Up], "postgres"),
        (&[Key::PageDown], "jbd2/nvme0n1p2-8"),
        (&[Key::PageDown, Key::PageUp], "postgres"),
        (&[Key::Char('j'), Key::Char('k')], "postgres"),
    ] {
        assert_eq!(selected(&pressed(keys, &busy), &busy), expected, "{keys:?}");
    }
}

#[test]
fn the_selection_follows_its_process_and_falls_to_its_row_when_that_is_gone() {
    let busy = busy();
    let view = pressed(&[Key::Down], &busy);
    // Sorted by time, backup is the second; its index in the account is another one.
    let mut later = busy.clone();
    later.account.waiters[0].time_ns = 1.0;
    assert_eq!(selected(&view, &later), "backup");
    later.account.waiters.retain(|waiter| waiter.subject != 0);
    later.profile.subjects[0].name = "another".to_owned();
    later.profile.subjects[0].pid = 7;
    let rows = processes(&later, view.by);
    assert_eq!(view.selected(&later, &rows), 1);
}

#[test]
fn a_process_is_opened_scrolled_and_closed() {
    let busy = busy();
    let mut view = pressed(&[Key::Down, Key::Enter, Key::Down, Key::Down, Key::Up], &busy);
    let opened = view.opened.clone().unwrap();
    assert_eq!((opened.pid, opened.find(&busy), view.scrolled), (2211, Some(0), 1));
    assert_eq!(opened.find(&idle()).map(|at| idle().profile.subjects[at as usize].pid), Some(2211));
    view.press(Key::Char('s'), Some(&busy));
    assert_eq!(view.by, Column::Time, "no list is there to be sorted");
    view.press(Key::Escape, Some(&busy));
    assert!(view.opened.is_none());
    assert_eq!(selected(&view, &busy), "backup", "where it was");
}

#[test]
fn keys_of_order_go_round() {
    let busy = busy();
    let mut view = View::default();
    let mut seen = Vec::new();
    for _ in Column::KEYS {
        seen.push(view.by);
        view.press(Key::Char('s'), Some(&busy));
    }
    assert_eq!((seen.as_slice(), view.by), (&Column::KEYS[..], Column::Time));
}

#[test]
fn leaving_and_suspending_work_from_everywhere_and_help_is_closed_by_any_other_key() {
    let busy = busy();
    for keys in [&[][..], &[Key::Char('?')], &[Key::Enter], &[Key::Char('p')]] {
        for (key, action) in [
            (Key::Char('q'), Action::Leave),
            (Key::Interrupt, Action::Leave),
            (Key::Suspend, Action::Suspend),
        ] {
            assert_eq!(pressed(keys, &busy).press(key, Some(&busy)), action);
        }
    }
    let view = pressed(&[Key::Char('?'), Key::Enter], &busy);
    assert!(!view.help && view.opened.is_none(), "the key does nothing else");
    assert!(pressed(&[Key::Char('p')], &busy).paused && !pressed(&[Key::Char('p'); 2], &busy).paused);
}

#[test]
fn without_an_account_keys_do_nothing_wrong() {
    let mut view = View::default();
    for key in [Key::Up, Key::Down, Key::Enter, Key::Escape, Key::Char('x')] {
        assert_eq!(view.press(key, None), Action::Nothing);
    }
    assert!(view.opened.is_none());
}
