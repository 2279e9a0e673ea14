//! The terminal as a whole screen: raw keys, an alternate screen, and cells to draw on. Escape sequences are those of ECMA-48 and xterm,
//! which every terminal of today knows.
//!
//! Invariant: the terminal is as it was before, however we leave: dropped, by a panic, or suspended.

use std::io::{self, BufWriter, IsTerminal, Stdin, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, Once, PoisonError};

use iowhy_core::problem::Problem;
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::draw::{Shown, draw};
use super::keys::{Decoder, Key};
use super::view::View;

/// Alternate screen, no cursor, nothing on it; and back.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[2J\u{1b}[H";
const LEAVE: &str = "\u{1b}[0m\u{1b}[?25h\u{1b}[?1049l";
/// Bytes of keys that are read at once.
const MAX_KEYS: usize = 256;

/// How the terminal was before it became ours; `None`: it is not ours.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Whether stdin and stdout are a terminal that can be drawn on. The error says what they are.
pub(crate) fn is_possible() -> Result<(), &'static str> {
    if !io::stdout().is_terminal() {
        Err("stdout is no terminal")
    } else if !io::stdin().is_terminal() {
        Err("stdin is no terminal, from which keys could be read")
    } else if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        Err("the terminal cannot place characters (TERM is not set, or `dumb`)")
    } else {
        Ok(())
    }
}

/// A terminal that is ours while this lives.
pub(crate) struct FullScreen {
    stdin: Stdin,
    terminal: Terminal<Cells>,
    decoder: Decoder,
    drawn: Size,
}

impl FullScreen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It cannot be set.
    pub(crate) fn enter() -> Result<FullScreen, Problem> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        take().map_err(unusable)?;
        let cells = Cells { out: BufWriter::with_capacity(1 << 16, io::stdout()), at: Position::ORIGIN };
        let terminal = Terminal::new(cells).inspect_err(|_| give_back()).map_err(unusable)?;
        Ok(FullScreen { stdin: io::stdin(), terminal, decoder: Decoder::default(), drawn: Size::ZERO })
    }

    /// Draws what has changed; `view` learns how far its page can be scrolled.
    ///
    /// # Errors
    /// The terminal does not take it, or is gone.
    pub(crate) fn draw(&mut self, shown: &Shown<'_>, view: &mut View) -> Result<(), Problem> {
        // Somebody else has set it meanwhile: the shell, after a stop that was not ours.
        if tcgetattr(io::stdin()).map_err(|e| unusable(e.into()))?.local_modes.contains(LocalModes::ICANON) {
            take().and_then(|()| self.terminal.clear()).map_err(unusable)?;
        }
        let mut scrolled = view.scrolled;
        let frame = self.terminal.draw(|frame| scrolled = draw(frame.buffer_mut(), shown, view));
        self.drawn = frame.map_err(unusable)?.area.as_size();
        view.scrolled = scrolled;
        Ok(())
    }

    /// Whether the terminal has another size than what was drawn.
    pub(crate) fn has_resized(&self) -> bool {
        self.terminal.size().is_ok_and(|size| size != self.drawn)
    }

    /// What can be waited for: a key.
    pub(crate) fn input(&self) -> BorrowedFd<'_> {
        self.stdin.as_fd()
    }

    /// The keys that were pressed. Does not wait.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn keys(&mut self) -> Result<Vec<Key>, Problem> {
        let mut bytes = [0; MAX_KEYS];
        let read = rustix::io::retry_on_intr(|| rustix::io::read(&self.stdin, &mut bytes));
        let read = read.map_err(|error| unusable(error.into()))?;
        Ok(self.decoder.keys(&bytes[..read]))
    }

    /// Stops this process, as Ctrl-Z does elsewhere, with the terminal as it was; comes back when it is continued.
    ///
    /// # Errors
    /// The terminal cannot be set again.
    pub(crate) fn suspend(&mut self) -> Result<(), Problem> {
        give_back();
        // The whole group, as the terminal would: sudo is in it.
        kill_current_process_group(Signal::TSTP).map_err(|error| unusable(error.into()))?;
        take().and_then(|()| self.terminal.clear()).map_err(unusable)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal ours.
fn take() -> io::Result<()> {
    let stdin = io::stdin();
    let mut state = tcgetattr(&stdin)?;
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(state.clone());
    state.make_raw();
    // A read gives what is there, and does not wait.
    state.special_codes[SpecialCodeIndex::VMIN] = 0;
    state.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(&stdin, OptionalActions::Now, &state)?;
    let mut out = io::stdout().lock();
    out.write_all(ENTER.as_bytes())?;
    out.flush()
}

/// Gives it back, if it is ours. What fails here fails because it is gone.
fn give_back() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        let mut out = io::stdout().lock();
        let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
        // Keys that nobody has read are no input for the shell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
    }
}

fn unusable(error: io::Error) -> Problem {
    Problem::failed(format!("the terminal cannot be used any more: {error}"))
        .hint("`sudo iowhy --all --time 10s` prints the account as text")
}

/// The cells of the screen.
struct Cells {
    out: BufWriter<Stdout>,
    at: Position,
}

impl Cells {
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }
}

/// The codes of a cell's style, which begin with what ends the one before.
fn codes(of: &Cell) -> String {
    let mut codes = "\u{1b}[0".to_owned();
    for (modifier, code) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")] {
        if of.modifier.contains(modifier) {
            codes.push_str(code);
        }
    }
    codes.push_str(match of.fg {
        Color::Red => ";31",
        Color::Green => ";32",
        _ => "",
    });
    codes.push('m');
    codes
}

impl Backend for Cells {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let (mut next, mut style) = (None, String::new());
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.set_cursor_position((x, y))?;
            }
            let codes = codes(cell);
            if codes != style {
                self.write(&codes)?;
                style = codes;
            }
            self.write(cell.symbol())?;
            // Behind a character that is wider or narrower than it seems the place is told anew.
            next = cell.symbol().is_ascii().then_some((x + 1, y));
        }
        self.write("\u{1b}[0m")
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.write("\u{1b}[?25l")
    }

    /// It comes back with the screen before.
    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.at)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.at = position.into();
        let text = format!("\u{1b}[{};{}H", self.at.y + 1, self.at.x + 1);
        self.write(&text)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.write("\u{1b}[0m\u{1b}[2J")
    }

    /// Everything is drawn anew behind it, so that all may go.
    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(io::stdout())?;
        // A terminal without a size (a serial line) has that of the first ones.
        let or = |given: u16, usual: u16| if given == 0 { usual } else { given };
        Ok(Size::new(or(size.ws_col, 80), or(size.ws_row, 24)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
