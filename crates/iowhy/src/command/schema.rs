//! `iowhy schema [KIND]`: the JSON schema of a kind of record, or all kinds with a line each.

use clap::ValueEnum;
use iowhy_core::problem::Problem;
use iowhy_view::terminal::wrap::{MAX_WIDTH, MIN_WIDTH, wrap};

use crate::cli::{OutputArgs, SchemaArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::record::lists::{Listed, NamedEntry, Offer};
use crate::record::{Kind, schema};

/// Runs the command.
///
/// # Errors
/// Outputs that cannot be written.
pub fn run(args: &SchemaArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let outputs = Outputs::open(options)?;
    if let Some(kind) = args.kind {
        let schema = schema::schema(kind);
        outputs.finish(&format!("{schema:#}\n"), &schema)?;
    } else {
        let kinds = kinds();
        let screen = list(&kinds, output::width().clamp(MIN_WIDTH, MAX_WIDTH));
        outputs.finish(&screen, &Listed::new(Kind::List, "schema", Offer::Kinds { kinds }))?;
    }
    Ok(Ending::done())
}

fn kinds() -> Vec<NamedEntry> {
    let about = |kind: &Kind| {
        let value = kind.to_possible_value()?;
        Some(NamedEntry { name: value.get_name().to_owned(), about: value.get_help()?.to_string() })
    };
    Kind::value_variants().iter().filter_map(about).collect()
}

fn list(kinds: &[NamedEntry], width: usize) -> String {
    let column = kinds.iter().map(|kind| kind.name.len()).max().unwrap_or(0) + 2;
    let indent = " ".repeat(column);
    kinds.iter().map(|kind| wrap(&kind.about, width, &format!("{:<column$}", kind.name), &indent)).collect()
}
