//! The classes that fio counts latencies in (`stat.c` of fio 3: 64 linear steps an octave), so that its tools read ours.

/// Bits of a class within an octave.
const BITS: u32 = 6;
/// Octaves above the exact ones.
const GROUPS: u64 = 29;

/// Number of the class that a latency falls into.
pub(super) fn index(ns: u64) -> u64 {
    let msb = ns.checked_ilog2().unwrap_or(0);
    if msb <= BITS {
        return ns;
    }
    let error_bits = msb - BITS;
    let base = u64::from(error_bits + 1) << BITS;
    let offset = (ns >> error_bits) & ((1 << BITS) - 1);
    (base + offset).min((GROUPS << BITS) - 1)
}

/// The latency that stands for a class: its middle.
pub(super) fn value(index: u64) -> u64 {
    if index < 1 << (BITS + 1) {
        return index;
    }
    let error_bits = (index >> BITS) - 1;
    let base = 1u64 << (error_bits + u64::from(BITS));
    let step = 1u64 << error_bits;
    base + (index % (1 << BITS)) * step + step / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fio_itself_uses_these_classes_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let run = std::process::Command::new("fio")
            .args(["--name=x", "--ioengine=null", "--size=16m", "--bs=4k", "--output-format=json+"])
            .current_dir(folder.path())
            .output();
        let Ok(run) = run else {
            println!("skipped: fio is not installed");
            return;
        };
        let text = String::from_utf8_lossy(&run.stdout);
        let told: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        let read = &told["jobs"][0]["read"];
        let classes: Vec<u64> = ["clat_ns", "lat_ns"]
            .iter()
            .filter_map(|key| read[key]["bins"].as_object())
            .flat_map(|bins| bins.keys().map(|key| key.parse::<u64>().unwrap()))
            .collect();
        assert!(classes.len() > 2, "{read}");
        for class in classes {
            assert_eq!(value(index(class)), class);
        }
    }

    #[test]
    fn classes_are_as_computed_by_hand() {
        // By hand: 128 to 129 is the first class of two, 1024 to 1039 the first of sixteen.
        for (ns, class) in
            [(0, 0), (127, 127), (128, 129), (129, 129), (130, 131), (1024, 1032), (1039, 1032), (1040, 1048)]
        {
            assert_eq!(value(index(ns)), class, "{ns}");
        }
        // A class holds the value that stands for it, and is off by less than 1 %.
        for ns in (0..40).flat_map(|n| [1u64 << n, (1 << n) + 1, (1 << n) * 3 / 2, (1u64 << (n + 1)) - 1]) {
            assert_eq!(index(value(index(ns))), index(ns));
            let off = (value(index(ns)) as f64 - ns as f64).abs();
            // Beyond the last octave everything is one class.
            if ns < 1 << 34 {
                assert!(off <= ns as f64 / 100.0 + 0.5, "{ns}");
            }
        }
        assert!(index(u64::MAX) < GROUPS << BITS);
    }
}
