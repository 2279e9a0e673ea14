//! `iowhy doctor [PATH]`: what this machine allows, and which settings of the path cost or hide something. Reads only; with
//! `--try` one setting is changed, measured and restored (`trial`).

mod trial;
mod wish;

use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_core::profile::Tier;
use iowhy_core::setting::{Group, Reading};
use iowhy_diagnose::setting::{Judgement, judge};
use iowhy_probe::environment;
use iowhy_probe::setting::{self, Storage};
use iowhy_watch::perf::{self, Rights};

use crate::cli::{DoctorArgs, OutputArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::record::doctor::{DoctorRecord, NextTier, RightsRecord, SettingRecord};
use crate::record::{Kind, SCHEMA};
use crate::screen;
use crate::shell;

/// Where `proc` and `sys` are.
const ROOT: &str = "/";

/// Runs the command.
///
/// # Errors
/// A refusal for a path that is not there, or an output that cannot be written.
pub fn run(args: &DoctorArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let path = args.path.clone().unwrap_or_else(|| PathBuf::from("."));
    let place = Storage::under(&path)?;
    if let Some(wish) = &args.trial {
        return trial::run(wish, args, options, &path, &place);
    }
    let outputs = Outputs::open(options)?;
    let readings = setting::read(Path::new(ROOT), &place);
    let settings = readings.iter().map(|reading| record_of(reading, &readings, &path)).collect();
    let record = DoctorRecord {
        schema: SCHEMA,
        kind: Kind::Doctor,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        path: path.display().to_string(),
        environment: environment::environment_of(&path, &place),
        warnings: Vec::new(),
        rights: rights(perf::rights()),
        no_device: place.devices.reason,
        settings,
    };
    outputs.finish(&screen::text(&screen::doctor::chapter(&record), output::width()), &record)?;
    Ok(Ending::done())
}

fn record_of(reading: &Reading, all: &[Reading], path: &Path) -> SettingRecord {
    let judgement = judge(reading, all);
    let measure = judgement.as_ref().map(|judgement| measure(reading, judgement, all, path));
    SettingRecord {
        group: reading.key.group(),
        reading: reading.clone(),
        judgement,
        measure: measure.flatten(),
    }
}

/// The command that measures another value: on the device that has this one, or on all that have it.
fn measure(reading: &Reading, judgement: &Judgement, all: &[Reading], path: &Path) -> Option<String> {
    let value = judgement.try_value.as_ref().filter(|_| judgement.can_try)?;
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    let alone = all.iter().filter(|other| other.key == reading.key).count() < 2;
    let device = match &reading.subject {
        Some(name)
            if matches!(reading.key.group(), Group::Queue | Group::Encryption)
                && !alone
                && !name.contains(' ') =>
        {
            format!("{name}/")
        }
        _ => String::new(),
    };
    Some(format!(
        "{sudo}iowhy doctor {} --try {device}{}={value}",
        shell::quoted(&path.display().to_string()),
        reading.key.id()
    ))
}

fn rights(rights: Rights) -> RightsRecord {
    let next = match rights.tier {
        Tier::None => Some((Tier::Stacks, "kernel-stacks")),
        Tier::Stacks => Some((Tier::Clock, "cpu-clock")),
        Tier::Clock => Some((Tier::Observer, "observer")),
        Tier::Observer => None,
    };
    let next = next.map(|(tier, wanted)| {
        // Without even switches the first limitation is what stands in the way of all.
        let limitation = rights
            .limitations
            .iter()
            .find(|limitation| limitation.id == wanted)
            .or(rights.limitations.first());
        NextTier {
            tier,
            shows: shows(tier).to_owned(),
            reason: limitation.map(|limitation| limitation.sentence.clone()),
            command: limitation.and_then(|limitation| limitation.fix.clone()),
        }
    });
    RightsRecord {
        tier: rights.tier,
        shows: shows(rights.tier).to_owned(),
        next,
        limitations: rights.limitations,
    }
}

fn shows(tier: Tier) -> &'static str {
    match tier {
        Tier::None => "counters of /proc, and the kernel function that each thread sleeps in",
        Tier::Stacks => "kernel stacks of the program's threads",
        Tier::Clock => "a sampling clock on every CPU, which is exact for programs that sleep often",
        Tier::Observer => "block requests, and every system call counted",
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::Limitation;
    use iowhy_core::setting::Key;

    use super::*;

    #[test]
    fn the_next_tier_has_the_command_of_what_it_lacks() {
        let limitation = |id: &str, fix: &str| Limitation {
            id: id.into(),
            sentence: format!("no {id}"),
            fix: Some(fix.into()),
        };
        let low = Rights {
            tier: Tier::Stacks,
            limitations: vec![limitation("cpu-clock", "setcap"), limitation("observer", "setcap")],
            ..Rights::default()
        };
        let record = rights(low);
        let next = record.next.unwrap();
        assert_eq!((next.tier, next.command.as_deref()), (Tier::Clock, Some("setcap")));
        assert_eq!(next.reason.as_deref(), Some("no cpu-clock"));
        let nothing =
            rights(Rights { limitations: vec![limitation("switches", "sysctl")], ..Rights::default() });
        assert_eq!(nothing.next.unwrap().command.as_deref(), Some("sysctl"));
        assert!(rights(Rights { tier: Tier::Observer, ..Rights::default() }).next.is_none());
    }

    #[test]
    fn what_measures_a_setting_is_a_command_that_can_be_typed() {
        let reading = Reading { subject: Some("vda".into()), ..Reading::new(Key::Nomerges, "2") };
        let record = record_of(&reading, std::slice::from_ref(&reading), Path::new("/a b/it's"));
        let measure = record.measure.unwrap();
        assert!(measure.ends_with("iowhy doctor '/a b/it'\\''s' --try nomerges=0"), "{measure}");
        // Devices that agree are changed together; where they differ each is named.
        let several = Reading { subject: Some("sda sdb".into()), ..reading.clone() };
        let record = record_of(&several, std::slice::from_ref(&several), Path::new("/data"));
        assert!(record.measure.unwrap().ends_with("iowhy doctor /data --try nomerges=0"));
        let both = [reading, Reading { subject: Some("vdb".into()), ..Reading::new(Key::Nomerges, "1") }];
        let record = record_of(&both[1], &both, Path::new("/data"));
        assert!(record.measure.unwrap().ends_with("iowhy doctor /data --try vdb/nomerges=0"));
        let powersave =
            Reading { offered: vec!["performance".into()], ..Reading::new(Key::Governor, "powersave") };
        let governor = record_of(&powersave, &[], Path::new("."));
        assert!(governor.measure.unwrap().ends_with("--try governor=performance"));
        let none = record_of(&Reading::new(Key::DirtyExpire, "1"), &[], Path::new("."));
        assert!(none.judgement.is_some() && none.measure.is_none());
    }
}
