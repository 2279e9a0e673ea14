//! The last section of a page: the machine, and warnings.

use iowhy_core::environment::Environment;
use iowhy_core::warning::Warning;

use super::heading::machine;
use iowhy_view::document::{Part, Section};

/// The machine and the warnings.
pub(crate) fn section(environment: &Environment, warnings: &[Warning]) -> Section {
    let mut parts = Vec::new();
    if !warnings.is_empty() {
        parts.push(Part::List(warnings.iter().map(words).collect()));
    }
    let mut lines = machine(environment);
    if let Some(options) = &environment.mount_options {
        lines.push(format!("mounted with {options}"));
    }
    if !environment.kernel.is_empty() {
        parts.push(Part::List(lines));
    }
    Section::new("Surroundings", parts)
}

/// Warnings alone.
pub(super) fn warnings(warnings: &[Warning]) -> Option<Section> {
    let messages: Vec<String> = warnings.iter().map(words).collect();
    (!messages.is_empty()).then(|| Section::new("Warnings", vec![Part::List(messages)]))
}

fn words(warning: &Warning) -> String {
    match &warning.next {
        Some(next) => format!("{}; next: {next}", warning.message),
        None => warning.message.clone(),
    }
}
