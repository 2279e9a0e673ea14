//! Programs to be watched: each does one thing whose extent is known.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::truth;

/// Runs one: `read PATH BLOCK TIMES` reads a file from start to end, so often; `call TIMES` prints what an
/// empty system call takes, in nanoseconds; `exit CODE` ends with a code.
pub(crate) fn run(words: &[String]) -> std::io::Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let wrong =
        || std::io::Error::other("program read PATH BLOCK TIMES, program call TIMES, or program exit CODE");
    match words.as_slice() {
        ["read", path, block, times] => {
            let block: usize = block.parse().map_err(|_| wrong())?;
            let times: usize = times.parse().map_err(|_| wrong())?;
            let file = File::open(path)?;
            let mut buffer = vec![0; block.max(1)];
            for _ in 0..times {
                let mut at = 0;
                loop {
                    match file.read_at(&mut buffer, at)? {
                        0 => break,
                        got => at += got as u64,
                    }
                }
            }
            Ok(())
        }
        ["call", times] => {
            // Printed alone: the host reads the number.
            println!("{}", truth::call(times.parse().map_err(|_| wrong())?)?);
            Ok(())
        }
        ["exit", code] => std::process::exit(code.parse().map_err(|_| wrong())?),
        _ => Err(wrong()),
    }
}
