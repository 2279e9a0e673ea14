//! How fast a trace is read: `read_speed FILE [COLUMNS]` reads it to its end once and prints nanoseconds a request as JSON.
//! The file should be in the page cache: this measures reading in the sense of understanding, not the disk.

use std::path::Path;
use std::time::Instant;

use iowhy_trace::{ColumnSpec, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: read_speed FILE [COLUMNS]")?;
    let columns = arguments.next().map(|text| ColumnSpec::parse("COLUMNS", &text)).transpose()?;
    let options = Options { columns, ..Options::default() };
    let begun = Instant::now();
    let mut trace = iowhy_trace::open(Path::new(&file), &options)?;
    let mut batch = Vec::new();
    // Every request is looked at, so that none can be left unread.
    let mut sum = 0u64;
    while trace.next_batch(&mut batch)? {
        sum = batch.iter().fold(sum, |sum, request| sum.wrapping_add(request.object ^ request.bytes));
    }
    let ns = begun.elapsed().as_nanos() as f64;
    let requests = trace.requests();
    println!(
        "{{\"format\":\"{}\",\"requests\":{requests},\"ns_per_request\":{:.3},\"checksum\":{sum}}}",
        trace.format().id(),
        ns / requests.max(1) as f64
    );
    Ok(())
}
