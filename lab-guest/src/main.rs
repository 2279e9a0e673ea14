//! The first process of a virtual machine of the lab (`/init`): follows `/lab.json`, a list of steps that `cargo xtask lab`
//! wrote, answers each with a line of JSON, and switches the machine off.
//!
//! Goal: fixtures with known costs by raw kernel interfaces, so that no other program is needed. Non-goal: judging; the
//! host does that. Invariant: the machine ends whatever happens, and the last line says whether all steps were followed.
//! `lab-guest program KIND ARG...` are small programs to be watched.

mod channel;
mod dm;
mod fixture;
mod image;
mod keyring;
mod loop_device;
mod md;
mod program;
mod run;
mod script;
mod swap;
mod sys;
mod tcmu;
mod truth;

use std::process::ExitCode;

use serde_json::json;

use crate::channel::Channel;
use crate::script::Guest;

/// Where the host puts the steps.
const SCRIPT: &str = "/lab.json";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "program") {
        return match program::run(&arguments[1..]) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("program: {error}");
                ExitCode::FAILURE
            }
        };
    }
    if std::process::id() != 1 {
        eprintln!("lab-guest is the first process of a virtual machine; `cargo xtask lab` starts one");
        return ExitCode::from(2);
    }
    let mut channel = Channel::open();
    let ended = fixture::base().and_then(|()| follow(&mut channel));
    channel.say(&match &ended {
        Ok(()) => json!({"end": "done"}),
        Err(why) => json!({"end": "failed", "why": why}),
    });
    sys::power_off();
    // Only reached when the kernel refuses; the host's time limit ends the machine.
    ExitCode::FAILURE
}

fn follow(channel: &mut Channel) -> Result<(), String> {
    let text = std::fs::read_to_string(SCRIPT).map_err(|e| format!("cannot read {SCRIPT}: {e}"))?;
    let steps: Vec<Vec<String>> =
        serde_json::from_str(&text).map_err(|e| format!("{SCRIPT} is not a list of steps: {e}"))?;
    let mut guest = Guest::default();
    for step in &steps {
        let answer = guest.follow(step).map_err(|why| format!("{}: {why}", step.join(" ")))?;
        if let Some(answer) = answer {
            channel.say(&answer);
        }
    }
    Ok(())
}
