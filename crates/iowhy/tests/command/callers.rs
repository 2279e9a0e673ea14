//! Whether the functions of programs that keep no frame pointers are found: who calls `read` is the first thing that a reader asks.

use std::process::Command;

use serde_json::Value;

use crate::common::{directory, iowhy, is_root, skipped, text};

const PROGRAM: &str = r#"
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#define APART __attribute__((noinline))
static char buffer[4096];
APART int wait_a_while(void) { struct timespec t = {0, 1000000}; return nanosleep(&t, 0); }
APART int turn(int n) { volatile int sum = 0; for (int i = 0; i < n; i++) sum += wait_a_while(); return sum; }
APART int load(int file) { int sum = 0; for (long i = 0; i < 300000; i++) sum += pread(file, buffer, 4096, (i % 4) * 4096); return sum; }
int main(int argc, char **argv) { volatile int sum = turn(300); sum += load(open(argv[0], O_RDONLY)); return sum == 1; }
"#;

/// The user frames of all stacks, innermost first, with their time in ns.
fn stacks(record: &Value) -> Vec<(Vec<&str>, f64)> {
    let profile = &record["profile"];
    let name = |id: &Value| profile["symbols"][id.as_u64().unwrap() as usize]["name"].as_str().unwrap();
    let stack = |s: &'_ Value| {
        let user = s["user"].as_array().map(|ids| ids.iter().map(name).collect()).unwrap_or_default();
        (user, s["time_ns"].as_f64().unwrap())
    };
    profile["stacks"].as_array().unwrap().iter().map(stack).collect()
}

#[test]
fn callers_are_found_where_no_frame_pointers_are_kept() {
    if !is_root() {
        return skipped("system calls cannot be counted here: only root may load the observer");
    }
    if cfg!(not(target_arch = "x86_64")) {
        return skipped("user stacks are copied on x86-64 only");
    }
    let folder = directory();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("program.c"), PROGRAM).unwrap();
    let (source, program, record) = (at("program.c"), at("program"), at("record.json"));
    let options = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o"];
    // Rust links with it, so it is there.
    let built = Command::new("cc").args(options).args([&program, &source]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let arguments = ["--quiet", "--no-calibrate", "--json", text(&record), "--", text(&program)];
    let output = iowhy(&arguments);
    assert_eq!(output.code(), 0, "{}", output.stderr);
    let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    let all = stacks(&record);
    let time = |leads: &dyn Fn(&[&str]) -> bool| -> f64 {
        all.iter().filter(|(user, _)| leads(user)).map(|(_, ns)| ns).sum()
    };
    let through = |user: &[&str], path: &[&str]| user.windows(path.len()).any(|part| part == path);
    // A thread that sleeps (the observer's switches), and one that runs (the clock).
    for (function, path) in
        [("wait_a_while", &["wait_a_while", "turn", "main"][..]), ("load", &["load", "main"][..])]
    {
        let of_it = time(&|user| user.contains(&function));
        assert!(of_it > 0.0, "{function} is on no stack: {all:?}");
        let whole = time(&|user| through(user, path));
        assert!(whole >= 0.9 * of_it, "{function}: {whole} of {of_it} ns lead to main: {all:?}");
    }
    let callers = record["call_sites"].as_array().unwrap();
    let load = callers.iter().find(|site| site["function"] == "load" && site["operation"] == "read");
    let load = load.unwrap_or_else(|| panic!("{callers:?}"));
    let functions: Vec<&Value> = load["callers"].as_array().unwrap().iter().map(|c| &c["function"]).collect();
    assert_eq!(functions, ["main"], "{load}");
    assert!(load["callers_share"].as_f64().unwrap() >= 0.9, "{load}");
}
