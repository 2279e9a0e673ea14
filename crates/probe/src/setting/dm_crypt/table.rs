//! The parameters of a dm-crypt target as text (Documentation/admin-guide/device-mapper/dm-crypt.rst): finds its optional
//! parameters, and writes the same line with one of them more or less.
//!
//! Invariants: the line holds the key, so that nothing of it is copied but into the buffer that the caller answers for, and
//! nothing is allocated: the handler of a signal does this too.

use std::io::Write;

/// `CIPHER KEY IV_OFFSET DEVICE OFFSET [COUNT OPTION...]`.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    /// All before the count of the options.
    head: &'a str,
    /// The options, with a space between two.
    options: &'a str,
}

impl<'a> Table<'a> {
    /// Reads a line; `None` where it is not of this form, or where the count is not that of the options.
    pub(super) fn parse(line: &'a str) -> Option<Table<'a>> {
        let mut rest = line;
        for part in ["cipher", "key", "iv_offset", "device", "offset"] {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let good = match part {
                "iv_offset" | "offset" => word.parse::<u64>().is_ok(),
                _ => !word.is_empty(),
            };
            if !good {
                return None;
            }
            rest = after;
        }
        let head = line.get(..line.len() - rest.len())?;
        if rest.is_empty() {
            // A space at the end would begin an empty option.
            return (!head.ends_with(' ')).then_some(Table { head, options: "" });
        }
        let (count, options) = rest.split_once(' ').unwrap_or((rest, ""));
        let table = Table { head: head.trim_end_matches(' '), options };
        let good =
            count.parse::<usize>().ok()? == table.options().count() && !table.options().any(str::is_empty);
        good.then_some(table)
    }

    /// The options in their order.
    pub(super) fn options(&self) -> impl Iterator<Item = &'a str> {
        // An empty text splits into one empty part.
        self.options.split(' ').skip(usize::from(self.options.is_empty()))
    }

    /// Whether it has this flag.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.options().any(|option| option == flag)
    }

    /// Whether dm-integrity below holds a part of it: both tables belong together.
    pub(super) fn has_integrity(&self) -> bool {
        self.options().any(|option| option.starts_with("integrity"))
    }

    /// Writes the line with or without a flag; returns its length, or `None` where there is no room.
    pub(super) fn write_with(&self, flag: &str, on: bool, out: &mut [u8]) -> Option<usize> {
        let room = out.len();
        let mut out = out;
        let others = || self.options().filter(|option| *option != flag);
        let count = others().count() + usize::from(on);
        write!(out, "{}", self.head).ok()?;
        if count > 0 {
            write!(out, " {count}").ok()?;
            for option in others().chain(on.then_some(flag)) {
                write!(out, " {option}").ok()?;
            }
        }
        Some(room - out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAG: &str = "no_read_workqueue";
    /// Lines of the kernel's documentation, and of the kernel's answer with a number for the device.
    const BARE: &str = "aes-cbc-essiv:sha256 babebabebabebabebabebabebabebabe 0 /dev/sda 0";
    const KEYRING: &str = "aes-cbc-essiv:sha256 :32:logon:my_prefix:my_key 0 /dev/sda 0";
    const THREE: &str =
        "capi:xts(aes)-plain64 00ff 8 8:16 32768 3 allow_discards same_cpu_crypt submit_from_crypt_cpus";

    fn with(line: &str, flag: &str, on: bool) -> String {
        let mut out = [0; 256];
        let length = Table::parse(line).unwrap().write_with(flag, on, &mut out).unwrap();
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_flag_comes_and_goes_and_the_rest_stays_as_it_is() {
        for line in [BARE, KEYRING] {
            let one = format!("{line} 1 {FLAG}");
            assert_eq!((with(line, FLAG, true), with(&one, FLAG, false)), (one.clone(), line.to_owned()));
            // A second time changes nothing.
            assert_eq!((with(&one, FLAG, true), with(line, FLAG, false)), (one, line.to_owned()));
        }
        let four = THREE.replace(" 3 ", " 4 ") + " " + FLAG;
        assert_eq!((with(THREE, FLAG, true), with(&four, FLAG, false)), (four, THREE.to_owned()));
        let two = "capi:xts(aes)-plain64 00ff 8 8:16 32768 2 allow_discards submit_from_crypt_cpus";
        assert_eq!(with(THREE, "same_cpu_crypt", false), two);
        // No options at all may be written as none or as a count of none.
        assert_eq!(with(&format!("{BARE} 0"), FLAG, true), format!("{BARE} 1 {FLAG}"));
        assert_eq!(with(&format!("{BARE} 0"), FLAG, false), BARE);
        // A cipher without a key.
        assert_eq!(
            with("cipher_null-ecb - 0 7:0 0", FLAG, true),
            format!("cipher_null-ecb - 0 7:0 0 1 {FLAG}")
        );
    }

    #[test]
    fn options_are_whole_words() {
        let of = |line: &str| Table::parse(line).unwrap().options().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of(THREE), ["allow_discards", "same_cpu_crypt", "submit_from_crypt_cpus"]);
        assert!(of(BARE).is_empty());
        let long = Table::parse("c k 0 8:0 0 1 no_read_workqueue_at_all").unwrap();
        assert!(!long.has(FLAG));
        // What a key or a cipher is called is no option.
        assert!(!Table::parse("no_read_workqueue :32:logon:no_read_workqueue 0 8:0 0").unwrap().has(FLAG));
        let sealed = "capi:gcm(aes)-random 00 0 8:0 0 2 integrity:28:aead sector_size:4096";
        assert!(
            Table::parse(sealed).unwrap().has_integrity() && !Table::parse(THREE).unwrap().has_integrity()
        );
    }

    #[test]
    fn what_is_not_of_this_form_is_not_taken() {
        for line in [
            "",
            "aes",
            "aes key 0 8:0",
            "aes key x 8:0 0",
            "aes key 0 8:0 x",
            "aes key -1 8:0 0",
            "aes  0 8:0 0",
            "aes key 0 8:0 0 ",
            "aes key 0 8:0 0 1",
            "aes key 0 8:0 0 x allow_discards",
            "aes key 0 8:0 0 2 allow_discards",
            "aes key 0 8:0 0 1 allow_discards same_cpu_crypt",
            "aes key 0 8:0 0 2 allow_discards ",
            "aes key 0 8:0 0 allow_discards",
            // A key whose description holds a space shifts all that follows.
            "aes :32:logon:my key 0 8:0 0",
        ] {
            assert!(Table::parse(line).is_none(), "`{line}`");
        }
    }

    #[test]
    fn a_line_without_room_is_not_written_in_part() {
        let table = Table::parse(BARE).unwrap();
        let whole = BARE.len() + " 1 ".len() + FLAG.len();
        assert_eq!(table.write_with(FLAG, true, &mut vec![0; whole]), Some(whole));
        assert_eq!(table.write_with(FLAG, true, &mut vec![0; whole - 1]), None);
    }
}
