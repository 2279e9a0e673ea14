//! A script from the command line: `scripted`, `scripted:FILE.toml`, with options behind a `?`.

use iowhy_core::model::{Cost, LayerCost, MODEL_SCHEMA, StackModel};
use iowhy_core::problem::Problem;

use super::Script;

/// The machine of a plain `scripted`.
const EXAMPLE: &str = include_str!("example.toml");

/// Parameters behind the `?`.
const OPTIONS: &str = "options are `noise=0.02`, `seed=7`, `fail-at=100` and `size=BYTES`, joined with `&`";

impl Script {
    /// The machine that iowhy brings along: round numbers that resemble a 2020s server with one NVMe device.
    ///
    /// # Errors
    /// None, as long as the file it is compiled from is valid.
    pub fn example() -> Result<Script, Problem> {
        Ok(Script::new(model("the built-in example", EXAMPLE)?))
    }

    /// Reads `scripted` or `scripted:FILE.toml`, either with options as in `?noise=0.02&seed=7&fail-at=100`.
    ///
    /// # Errors
    /// Names the option or the file, and what would be right.
    pub fn from_spec(spec: &str) -> Result<Script, Problem> {
        let (machine, options) = spec.split_once('?').unwrap_or((spec, ""));
        let mut script = match machine.split_once(':') {
            None if machine == "scripted" => Script::example()?,
            Some(("scripted", path)) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Problem::refused(format!("cannot read the model `{path}`: {error}")).hint(
                        "name a model that `--save-model` wrote, or plain `scripted` for the built-in one",
                    )
                })?;
                Script::new(model(path, &text)?)
            }
            _ => {
                return Err(Problem::refused(format!("`{spec}` is no scripted target"))
                    .hint("write `scripted` or `scripted:FILE.toml`"));
            }
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            match key {
                "noise" => script.noise = number(option, value, |noise: &f64| (0.0..=1.0).contains(noise))?,
                "seed" => script.seed = number(option, value, |_| true)?,
                "fail-at" => script.fail_at = Some(number(option, value, |_| true)?),
                "size" => script.size_bytes = number(option, value, |&bytes: &u64| bytes > 0)?,
                _ => {
                    let message = format!("`{key}` is no option of a scripted target");
                    return Err(Problem::refused(message).hint(OPTIONS));
                }
            }
        }
        Ok(script)
    }
}

fn number<T: std::str::FromStr>(option: &str, value: &str, fits: impl Fn(&T) -> bool) -> Result<T, Problem> {
    value.parse().ok().filter(fits).ok_or_else(|| {
        Problem::refused(format!("`{option}` is not a value that this option takes")).hint(OPTIONS)
    })
}

/// Parses and checks a model. Costs written without an interval are exact.
fn model(name: &str, text: &str) -> Result<StackModel, Problem> {
    let mut model: StackModel = toml::from_str(text)
        .map_err(|error| Problem::refused(format!("`{name}` is no stack model: {}", in_one_line(&error))))?;
    if let Some(fault) = fault(&model) {
        return Err(Problem::refused(format!("`{name}` is no stack model: {fault}")));
    }
    for cost in model.layers.values_mut().chain(model.parts.values_mut()) {
        if (cost.low, cost.high) == (Cost::default(), Cost::default()) {
            *cost = LayerCost::exact(cost.cost);
        }
    }
    Ok(model)
}

/// The message of TOML's parser, without its drawing of the line.
fn in_one_line(error: &toml::de::Error) -> String {
    error.message().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Impossible parameters.
fn fault(model: &StackModel) -> Option<String> {
    let possible = |cost: &Cost| {
        [cost.per_call_ns, cost.per_page_ns, cost.per_byte_ns].iter().all(|ns| ns.is_finite() && *ns >= 0.0)
    };
    if model.schema != MODEL_SCHEMA {
        return Some(format!("schema is {}, this version reads {MODEL_SCHEMA}", model.schema));
    }
    if model.page_bytes == 0 || model.read_ahead_bytes == 0 {
        return Some("page_bytes and read_ahead_bytes must be greater than 0".into());
    }
    if !(model.device_parallelism.is_finite() && model.device_parallelism > 0.0) {
        return Some("device_parallelism must be greater than 0".into());
    }
    let layers = model.layers.iter().map(|(layer, cost)| (format!("layers.{}", layer.id()), cost));
    let parts = model.parts.iter().map(|(part, cost)| (format!("parts.{part:?}").to_lowercase(), cost));
    let (place, _) = layers.chain(parts).find(|(_, cost)| !possible(&cost.cost))?;
    Some(format!("a cost of {place} is negative or not a number"))
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;

    #[test]
    fn the_example_is_exact_and_takes_options() {
        let script = Script::from_spec("scripted").unwrap();
        assert_eq!((script.noise, script.fail_at), (0.0, None));
        let call = script.model.layers[&Layer::Call];
        assert_eq!((call.cost.per_call_ns, call.low, call.high), (150.0, call.cost, call.cost));
        let script = Script::from_spec("scripted?noise=0.02&seed=7&fail-at=100&size=4096").unwrap();
        assert_eq!(
            (script.noise, script.seed, script.fail_at, script.size_bytes),
            (0.02, 7, Some(100), 4096)
        );
    }

    #[test]
    fn a_file_is_read_and_its_intervals_are_kept() {
        let mut model = Script::example().unwrap().model;
        let call = model.layers.get_mut(&Layer::Call).unwrap();
        call.cost.per_call_ns = 99.0;
        call.low.per_call_ns = 90.0;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), toml::to_string(&model).unwrap()).unwrap();
        let spec = format!("scripted:{}?seed=3", file.path().display());
        assert_eq!(Script::from_spec(&spec).unwrap().model, model);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |spec: &str| Script::from_spec(spec).unwrap_err().message;
        assert!(message("script").contains("`script`"));
        assert!(message("scripted:/no/such.toml").contains("`/no/such.toml`"));
        for (spec, named) in [
            ("scripted?nosie=1", "`nosie`"),
            ("scripted?noise=-1", "`noise=-1`"),
            ("scripted?noise=NaN", "`noise=NaN`"),
            ("scripted?seed", "`seed`"),
            ("scripted?size=0", "`size=0`"),
        ] {
            let problem = Script::from_spec(spec).unwrap_err();
            assert!(problem.message.contains(named), "{problem}");
            assert_eq!(problem.hint.as_deref(), Some(OPTIONS));
        }
        let fault = |from: &str, to: &str| {
            assert!(EXAMPLE.contains(from));
            let problem = model("m.toml", &EXAMPLE.replace(from, to)).unwrap_err();
            assert!(problem.message.contains("`m.toml`") && !problem.message.contains('\n'), "{problem}");
            problem.message
        };
        assert!(fault("schema = 1", "schema = 9").contains("schema is 9"));
        assert!(fault("page_bytes = 4096", "page_bytes = 0").contains("page_bytes"));
        assert!(
            fault("device_parallelism = 16.0", "device_parallelism = nan").contains("device_parallelism")
        );
        assert!(fault("per_call_ns = 140.0", "per_call_ns = -1.0").contains("layers.filesystem"));
        assert!(
            fault("[parts.vfs]\nper_call_ns = 60.0", "[parts.vfs]\nper_call_ns = inf").contains("parts.vfs")
        );
        fault("[layers.call]", "[layers.cellar]");
        fault("schema = 1", "schema = ");
    }
}
