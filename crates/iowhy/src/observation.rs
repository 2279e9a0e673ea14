//! What `iowhy -- CMD` and `iowhy attach` do alike: options, outputs, watching, and what is made of the profile.

use std::path::Path;

use iowhy_core::model::StackModel;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Tier;
use iowhy_core::warning::Warning;
use iowhy_watch::child::Refusal;
use iowhy_watch::perf;
use iowhy_watch::session::{self, Options, Subject, Watched};

use crate::analyzer::Analyzer;
use crate::cli::SightArgs;
use crate::machine;
use crate::prediction::{Calibrate, calibrated};
use crate::profile_files::{ProfileFiles, Shown};
use crate::rank;
use crate::record::watch::{Invocation, RanAs, WatchRecord, record};
use crate::shell;

/// Everything that is decided before watching begins.
pub(crate) struct Observation {
    meaning: Analyzer,
    model: Option<StackModel>,
    tier: Tier,
    count_calls: bool,
    record_calls: bool,
    calibrate: bool,
    files: ProfileFiles,
}

impl Observation {
    /// Reads the options, the model of the machine and the table of functions, and opens the outputs. `command`: the command with an
    /// option, for a hint.
    ///
    /// # Errors
    /// Refusals that name the option.
    pub(crate) fn prepare(
        args: &SightArgs,
        prove: bool,
        command: &dyn Fn(&str) -> String,
    ) -> Result<Observation, Problem> {
        let tier = args.tier.unwrap_or(Tier::Observer);
        let record_calls = prove || args.record_calls;
        if record_calls {
            let option = if prove { "--prove" } else { "--record-calls" };
            check_calls_are_recorded(option, tier, args.no_counts, &command(option))?;
        }
        let model = args.model.as_deref().map(machine).transpose()?;
        let files = ProfileFiles::open(args)?;
        let (meaning, count_calls) = (Analyzer::new(), !args.no_counts);
        // A proof repeats all of the calls.
        let calibrate = !args.no_calibrate && !prove;
        Ok(Observation { meaning, model, tier, count_calls, record_calls, calibrate, files })
    }

    /// Watches to the end. `begun` is called when everything that follows is seen.
    ///
    /// # Errors
    /// Those of [`session::watch`].
    pub(crate) fn watch(&self, subject: &Subject, begun: &dyn Fn()) -> Result<Watched, Refusal> {
        let on_path = |kernel: &[&str]| self.meaning.on_path(kernel);
        let options = Options {
            on_path: &on_path,
            tier: self.tier,
            count_calls: self.count_calls,
            record_calls: self.record_calls,
            keep_events: self.files.want_events(),
            begun,
        };
        session::watch(subject, &options)
    }

    /// That the files for programs that show profiles stay unwritten.
    pub(crate) fn unwritten(&self) -> Option<Warning> {
        self.files.unwritten()
    }

    /// Makes the record, and writes the files for programs that show profiles. A failure to write one costs neither the record nor the
    /// others.
    pub(crate) fn finish(
        self,
        watched: Watched,
        subject: String,
        ran_as: Option<RanAs>,
        calibrate: Calibrate,
        quiet: bool,
    ) -> (WatchRecord, Result<(), Problem>) {
        let Watched { profile, events } = watched;
        let model = self.model.as_ref();
        let explained = self.meaning.explain(&profile, model);
        let calibrate = if self.calibrate { calibrate } else { Calibrate::No };
        let explained = calibrated(&self.meaning, &profile, model, explained, calibrate, quiet);
        let mut invocation = invocation(subject, ran_as);
        let shown = Shown { profile: &profile, events: events.as_ref(), findings: &explained.findings };
        invocation.warnings.extend(self.files.warning(shown));
        let written = self.files.write(shown, &self.meaning, &invocation.subject);
        (record(profile, explained, &self.meaning, invocation), written)
    }
}

/// That every call can be recorded here: without the record nothing can be replayed, and the program would run for nothing.
fn check_calls_are_recorded(option: &str, tier: Tier, no_counts: bool, command: &str) -> Result<(), Problem> {
    let rights = perf::rights().at_most(tier);
    if rights.observer && !no_counts {
        return Ok(());
    }
    let why = if no_counts {
        "`--no-counts` forbids that".to_owned()
    } else {
        format!("that takes tier observer, and {} is used", rights.tier.id())
    };
    Err(Problem::refused(format!("`{option}` replays a record of every call of the program: {why}")).hint(format!(
        "as root, or with CAP_BPF and CAP_PERFMON: `sudo {command}`; without `{option}` the program is profiled all the same"
    )))
}

/// What is known beside a profile.
pub(crate) fn invocation(subject: String, ran_as: Option<RanAs>) -> Invocation {
    Invocation {
        command: shell::line(std::env::args_os()),
        subject,
        ran_as,
        rank: rank::own().cloned(),
        environment: machine::here(),
        warnings: Vec::new(),
    }
}

/// The model of the machine.
fn machine(path: &Path) -> Result<StackModel, Problem> {
    let named = format!("`--model {}`", path.display());
    let hint = "`iowhy --save-model FILE` measures this machine and writes such a file";
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problem::refused(format!("cannot read {named}: {error}")).hint(hint))?;
    toml::from_str(&text).map_err(|error| {
        let reason = error.message().lines().next().unwrap_or("unreadable").to_owned();
        Problem::refused(format!("{named} is no model of a machine: {reason}")).hint(hint)
    })
}
