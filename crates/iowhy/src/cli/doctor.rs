//! Options of `doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use iowhy_core::nearest::did_you_mean;
use iowhy_core::problem::Problem;
use iowhy_core::setting::{Group, Key};
use iowhy_core::units::{self, refused_value};
use iowhy_diagnose::setting::TRIED;

use super::value::{seed, time_from, value};

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// A directory, a file or a device: its settings are read [default: the current directory]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,

    /// Change one setting, measure canonical requests with the old and the new value in turn, and restore the old value: scheduler, read_ahead_kb, nr_requests, wbt_lat_usec, iostats, nomerges, thp, dirty_ratio,
    /// dirty_bytes, dirty_background_ratio, dirty_background_bytes, governor, no_read_workqueue, no_write_workqueue, same_cpu_crypt, submit_from_crypt_cpus, atime, lazytime. If the path is on several
    /// devices, all of them change, or one: `--try sda/nomerges=0`. Needs root, and affects every program meanwhile
    #[arg(long = "try", value_name = "[DEVICE/]KEY=VALUE", allow_hyphen_values = true, value_parser = value(Wish::parse))]
    pub trial: Option<Wish>,

    /// --try: time to spend, including setup [default: 20s]
    #[arg(long, value_name = "TIME", requires = "trial", allow_hyphen_values = true, value_parser = value(time_from(Duration::from_secs(2))))]
    pub time: Option<Duration>,

    /// --try: size of the scratch file, or of the part of the file that is measured [default: 256m]
    #[arg(long, value_name = "SIZE", requires = "trial", allow_hyphen_values = true, value_parser = value(units::parse_bytes_nonzero))]
    pub size: Option<u64>,

    /// --try: smallest relative change to report [default: 5%]
    #[arg(long, value_name = "SHARE", requires = "trial", allow_hyphen_values = true, value_parser = value(units::parse_percent))]
    pub threshold: Option<f64>,

    /// --try: seed of every order, pattern and interval [default: 1]
    #[arg(long, value_name = "N", requires = "trial", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: Option<u64>,
}

/// `--try KEY=VALUE` or `--try DEVICE/KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Of several devices this one alone.
    pub device: Option<String>,
    /// The setting.
    pub key: Key,
    /// Its wanted value.
    pub value: String,
}

impl std::fmt::Display for Wish {
    /// As it is typed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(device) = &self.device {
            write!(f, "{device}/")?;
        }
        write!(f, "{}={}", self.key.id(), self.value)
    }
}

impl Wish {
    /// Reads it.
    ///
    /// # Errors
    /// A refusal for what is no `KEY=VALUE`, and for settings that are not known or cannot be tried.
    pub fn parse(option: &str, text: &str) -> Result<Wish, Problem> {
        let refused = |why: &str, hint: String| Err(refused_value(option, text, why, hint));
        let known = || format!("KEY is one of {}", TRIED.map(Key::id).join(", "));
        let Some((name, value)) =
            text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty())
        else {
            return refused(
                "not KEY=VALUE",
                format!("for example `{option} read_ahead_kb=512`; {}", known()),
            );
        };
        let (device, name) = match name.rsplit_once('/') {
            Some((device, name)) => (Some(device.trim_start_matches("/dev/").to_owned()), name),
            None => (None, name),
        };
        let key = match Key::from_id(name) {
            Some(key) if TRIED.contains(&key) => key,
            Some(Key::Mitigations) => {
                return refused("the kernel settles mitigations when it starts", AT_BOOT.to_owned());
            }
            Some(_) => {
                return refused(&format!("`{name}` is shown, but cannot be tried"), BY_HAND.to_owned());
            }
            None => {
                let near = did_you_mean(name, TRIED.map(Key::id));
                return refused(&format!("there is no setting `{name}`"), format!("{near}{}", known()));
            }
        };
        if device.is_some() && !matches!(key.group(), Group::Queue | Group::Encryption) {
            return refused(
                &format!("`{name}` is no setting of a device"),
                format!("leave the device away: `{option} {name}={value}`"),
            );
        }
        Ok(Wish { device, key, value: value.trim().to_owned() })
    }
}

const BY_HAND: &str = "measure it by hand: `iowhy --json before.json PATH`, change it, `iowhy --json after.json PATH`, `iowhy \
                       compare before.json after.json`";

const AT_BOOT: &str = "measure them over two boots: `iowhy --json before.json PATH`, add `mitigations=off` to the kernel's command \
                       line (unsafe: other programs may then read secrets out of the CPU), boot, `iowhy --json after.json \
                       PATH`, `iowhy compare before.json after.json`, and take it out again";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Wish, Problem> {
        Wish::parse("--try", text)
    }

    #[test]
    fn what_is_no_wish_or_for_nothing_known_is_refused_with_the_list() {
        for text in ["", "=", "scheduler", "scheduler=", "=none"] {
            assert!(parse(text).unwrap_err().hint.unwrap().contains("read_ahead_kb"), "{text}");
        }
        let unknown = parse("elevator=none").unwrap_err();
        assert!(
            unknown.message.contains("elevator")
                && unknown.hint.unwrap().contains("scheduler, read_ahead_kb")
        );
        assert!(parse("shceduler=none").unwrap_err().hint.unwrap().contains("did you mean `scheduler`?"));
        assert!(parse("swappiness=0").unwrap_err().hint.unwrap().contains("compare"));
        assert!(parse("mitigations=off").unwrap_err().hint.unwrap().contains("`mitigations=off`"));
        assert!(parse("vda/thp=never").unwrap_err().hint.unwrap().contains("--try thp=never"));
        let one = parse("/dev/vda/nomerges=2").unwrap();
        assert_eq!((one.device.as_deref(), one.key), (Some("vda"), Key::Nomerges));
    }
}
