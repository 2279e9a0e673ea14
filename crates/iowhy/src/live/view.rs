//! What the live view shows: which page, sorted by which key, which process is selected. Pure: a key and an account make the next view.

use iowhy_core::machine::Subject;

use super::keys::Key;
use crate::record::whole_machine::WholeMachineRecord;
use crate::screen::whole_machine::tables::{Column, Process, processes};

/// Rows of a page key.
const PAGE: usize = 10;

/// A process or kernel thread over the accounts: its index changes from one to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// 0: it is known by its name alone.
    pub(crate) pid: u32,
    /// Its name, when it was selected.
    pub(crate) name: String,
    kernel: bool,
}

impl Who {
    fn new(of: &Subject) -> Who {
        Who { pid: of.pid, name: of.name.clone(), kernel: of.kernel }
    }

    fn is(&self, of: &Subject) -> bool {
        self.pid == of.pid && (self.pid > 0 || (self.kernel == of.kernel && self.name == of.name))
    }

    /// Its index in an account; `None`: it did nothing meanwhile.
    pub(crate) fn find(&self, record: &WholeMachineRecord) -> Option<u32> {
        let at = record.profile.subjects.iter().position(|of| self.is(of))?;
        u32::try_from(at).ok()
    }
}

/// The state of the view.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// Its key of order.
    pub(crate) by: Column,
    /// The account stays as it is.
    pub(crate) paused: bool,
    /// The keys are explained.
    pub(crate) help: bool,
    /// The process whose account is open.
    pub(crate) opened: Option<Who>,
    /// Lines of an open account above the screen.
    pub(crate) scrolled: usize,
    selected: Option<Who>,
    /// The row that was selected last, for when its process is gone.
    row: usize,
}

/// What a key asks for beside another view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Leave,
    Suspend,
}

impl View {
    /// The selected row among these.
    pub(crate) fn selected(&self, record: &WholeMachineRecord, rows: &[Process<'_>]) -> usize {
        let is_it = |row: &Process<'_>| {
            let of = record.profile.subjects.get(row.subject as usize);
            self.selected.as_ref().zip(of).is_some_and(|(who, of)| who.is(of))
        };
        rows.iter().position(is_it).unwrap_or(self.row.min(rows.len().saturating_sub(1)))
    }

    /// A key was pressed while this account was shown.
    pub(crate) fn press(&mut self, key: Key, record: Option<&WholeMachineRecord>) -> Action {
        match key {
            Key::Interrupt | Key::Char('q') => return Action::Leave,
            Key::Suspend => return Action::Suspend,
            // Whatever else closes the help.
            _ if self.help => self.help = false,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char('p') => self.paused = !self.paused,
            Key::Escape => self.opened = None,
            Key::Up | Key::Char('k') => self.go(record, -1),
            Key::Down | Key::Char('j') => self.go(record, 1),
            Key::PageUp => self.go(record, -(PAGE as isize)),
            Key::PageDown => self.go(record, PAGE as isize),
            Key::Char('s') if self.opened.is_none() => self.sort(),
            Key::Enter if self.opened.is_none() => self.open(record),
            Key::Enter | Key::Char(_) => {}
        }
        Action::Nothing
    }

    /// Rows up or down; in an open account it scrolls.
    fn go(&mut self, record: Option<&WholeMachineRecord>, by: isize) {
        if self.opened.is_some() {
            self.scrolled = self.scrolled.saturating_add_signed(by);
            return;
        }
        let Some(record) = record else { return };
        let rows = processes(record, self.by);
        let row = self.selected(record, &rows).saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.select(record, &rows, row);
    }

    fn select(&mut self, record: &WholeMachineRecord, rows: &[Process<'_>], row: usize) {
        let of = rows.get(row).and_then(|row| record.profile.subjects.get(row.subject as usize));
        self.selected = of.map(Who::new);
        self.row = row;
    }

    /// By the next key. The selection goes to the top: the order is a new one.
    fn sort(&mut self) {
        let at = Column::KEYS.iter().position(|key| *key == self.by).map_or(0, |at| at + 1);
        self.by = Column::KEYS[at % Column::KEYS.len()];
        (self.selected, self.row) = (None, 0);
    }

    fn open(&mut self, record: Option<&WholeMachineRecord>) {
        let Some(record) = record else { return };
        let rows = processes(record, self.by);
        let row = self.selected(record, &rows);
        self.select(record, &rows, row);
        (self.opened, self.scrolled) = (self.selected.clone(), 0);
    }
}
