//! A program that may not be profiled: its run time, the reason, and the next command.

use iowhy_core::units;
use iowhy_view::document::{Chapter, Part, Section};

use crate::record::run_time::RunTimeRecord;
use crate::record::watch::Exit;

/// The chapter.
pub fn chapter(record: &RunTimeRecord) -> Chapter {
    let mut facts = vec![format!("{} wall", units::time(record.wall_s * 1e9))];
    facts.extend(record.cpu_s.map(|cpu_s| format!("{} CPU", units::time(cpu_s * 1e9))));
    match record.exit {
        None | Some(Exit::Code(0)) => {}
        Some(Exit::Code(code)) => facts.push(format!("exit code {code}")),
        Some(Exit::Signal(signal)) => facts.push(format!("killed by signal {signal}")),
    }
    let mut parts = Vec::new();
    for lack in &record.limitations {
        let next = if lack.fix.is_some() { "; run as root:" } else { "" };
        parts.push(Part::Text(format!("{}{next}", lack.sentence)));
        parts.extend(lack.fix.clone().map(Part::Command));
    }
    Chapter {
        title: record.subject.clone(),
        facts: vec![facts.join(", ")],
        sections: vec![Section::new("", parts)],
        ..Chapter::default()
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::{End, IoCounters, Limitation, Profile, Sight};

    use super::*;
    use crate::record::watch::Invocation;

    #[test]
    fn run_time_end_reason_and_next_command_are_said_and_nothing_else() {
        let limitation = |id: &str| Limitation {
            id: id.to_owned(),
            sentence: "this program may not be watched (setuid): only its run time is known, 2.00 s"
                .to_owned(),
            fix: Some("sudo iowhy -- ./ssleep 2".to_owned()),
        };
        let mut profile = Profile {
            wall_ns: 2_000_000_000,
            end: End::Code(3),
            sight: Sight {
                limitations: vec![limitation("no-kernel-stacks"), limitation(Limitation::ONLY_RUN_TIME)],
                ..Sight::default()
            },
            io: IoCounters { user_ns: Some(1_000_000), system_ns: Some(500_000), ..IoCounters::default() },
            ..Profile::default()
        };
        let invocation = || Invocation { subject: "./ssleep 2".to_owned(), ..Invocation::default() };
        let record = RunTimeRecord::new(&profile, invocation()).unwrap();
        let screen = anstream::adapter::strip_str(&crate::screen::text(&chapter(&record), 100)).to_string();
        assert_eq!(
            screen,
            "./ssleep 2\n  2.00 s wall, 1.50 ms CPU, exit code 3\n\nthis program may not be watched (setuid): only its \
             run time is known, 2.00 s; run as root:\n  > sudo iowhy -- ./ssleep 2\n"
        );
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!((&json["wall_s"], &json["exit"]), (&2.0.into(), &serde_json::json!({"code": 3})));
        for key in ["profile", "idle_s", "thread_s", "io", "findings"] {
            assert!(json.get(key).is_none(), "{key} would be a guess");
        }
        profile.sight.limitations.pop();
        assert_eq!(RunTimeRecord::new(&profile, invocation()), None);
    }
}
