//! Finding a format out, reading, summing up and writing, on arbitrary bytes. `cargo +nightly fuzz run detect`.
#![no_main]

use iowhy_trace::survey::Survey;
use iowhy_trace::{Options, from_reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let source = Box::new(std::io::Cursor::new(data.to_vec()));
    let Ok(mut trace) = from_reader("fuzz", source, &Options::default()) else { return };
    let mut survey = Survey::new(trace.kind());
    let mut batch = Vec::new();
    while matches!(trace.next_batch(&mut batch), Ok(true)) {
        survey.add(&batch);
    }
    let _ = (survey.objects(), survey.footprint_bytes(), survey.size_quantile(0.5));
});
