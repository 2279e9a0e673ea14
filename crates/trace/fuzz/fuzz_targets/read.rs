//! Every reader on arbitrary bytes: the first byte chooses the reader. `cargo +nightly fuzz run read`; good seeds are the
//! files of `tests/golden`, each behind a byte.
#![no_main]

use iowhy_trace::{BlockAction, Format, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let formats: Vec<Format> = Format::all().collect();
    let format = formats[usize::from(*choice) % formats.len()];
    let action = if *choice & 0x80 == 0 { BlockAction::Queue } else { BlockAction::Issue };
    // Other formats refuse it.
    let action = matches!(format, Format::Blktrace | Format::Blkparse).then_some(action);
    let options = Options { format: Some(format), columns: None, action };
    let source = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let Ok(mut trace) = iowhy_trace::from_reader("fuzz", source, &options) else { return };
    let mut batch = Vec::new();
    while matches!(trace.next_batch(&mut batch), Ok(true)) {}
});
