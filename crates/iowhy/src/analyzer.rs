//! Joins the watcher's profile with the explainer: classes, account, findings, manual pages.
//!
//! The one place of the facade that knows where those come from; commands, record and screens use what is here.
//! What may not enter: arithmetic of its own, text of its own.

use iowhy_core::finding::{Finding, FindingId, Prediction};
use iowhy_core::model::StackModel;
use iowhy_core::profile::{Profile, StackTime, State};
use iowhy_diagnose::account::{Account, account, meanings};
use iowhy_diagnose::advice::{self, KnownProgram};
use iowhy_diagnose::classify::{Class, Classifier, Operation};
use iowhy_diagnose::findings::{self, Facts};

/// What gives stacks their meaning.
#[derive(Debug)]
pub struct Analyzer {
    classifier: Classifier,
}

impl Default for Analyzer {
    fn default() -> Analyzer {
        Analyzer::new()
    }
}

/// A profile, explained.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explained {
    /// Where the time went.
    pub account: Account,
    /// Why, most valuable first.
    pub findings: Vec<Finding>,
}

impl Analyzer {
    /// Loads the table of kernel functions.
    pub fn new() -> Analyzer {
        Analyzer { classifier: Classifier::new() }
    }

    /// Whether a thread asleep with these kernel functions (innermost first) waits on the I/O path.
    pub fn on_path(&self, kernel: &[&str]) -> bool {
        self.classifier.on_path(kernel)
    }

    /// What these kernel functions (innermost first) mean.
    pub fn class(&self, kernel: &[&str], state: State) -> Class {
        self.classifier.classify(kernel, state)
    }

    /// What the program asks for by a system call of this name: `pread64` reads.
    pub fn operation_of_call(&self, name: &str) -> Operation {
        self.classifier.operation_of_call(name)
    }

    /// What the stacks of a profile mean, as its account books them.
    pub fn meanings<'a>(&'a self, profile: &'a Profile) -> impl Fn(&StackTime) -> Class + 'a {
        meanings(profile, &self.classifier)
    }

    /// Where the time of a run went.
    pub fn account(&self, profile: &Profile) -> Account {
        account(profile, &self.classifier)
    }

    /// Where the time of a run went, and why.
    pub fn explain(&self, profile: &Profile, model: Option<&StackModel>) -> Explained {
        let account = self.account(profile);
        let findings = findings::judge(&Facts::new(profile, &account, model));
        Explained { account, findings }
    }

    /// The same explanation where the gains of findings were calibrated.
    pub fn predicted(
        &self,
        profile: &Profile,
        model: Option<&StackModel>,
        explained: Explained,
        predictions: &[(FindingId, Prediction)],
    ) -> Explained {
        let account = explained.account;
        let findings = findings::judge(&Facts::new(profile, &account, model).with(predictions));
        Explained { account, findings }
    }
}

/// The cause that a finding names, in one line.
pub fn claim(id: FindingId) -> &'static str {
    findings::claim(id)
}

/// The manual page of a finding, in Markdown.
pub fn manual(id: FindingId) -> &'static str {
    findings::manual(id)
}

/// Well-known programs with a change for a finding.
pub fn programs(id: FindingId) -> Vec<KnownProgram> {
    advice::known(id)
}
