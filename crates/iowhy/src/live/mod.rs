//! The whole machine once a second on a terminal: what is drawn and which keys do what are pure functions of an account and a view; the
//! terminal itself is one file. How an account is made is the command's matter.

mod ansi;
mod draw;
mod full_screen;
mod keys;
mod view;

pub(crate) use draw::Shown;
pub(crate) use full_screen::{FullScreen, is_possible};
pub(crate) use view::{Action, View};

#[cfg(test)]
mod draw_tests;
#[cfg(test)]
mod view_tests;
