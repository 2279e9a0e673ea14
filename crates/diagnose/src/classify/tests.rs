//! Laws of the walk that hold for any stack; known answers are in `tests/`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::State;
use proptest::prelude::*;

use super::*;

#[test]
fn any_stack_is_given_a_meaning_that_fits_its_state() {
    let classifier = Classifier::new();
    let names: Vec<String> = classifier.listed().iter().map(|l| l.pattern.replace('*', "x")).collect();
    let names = prop::collection::vec(prop::sample::select(names), 0..12);
    let state = prop::sample::select(vec![State::Running, State::Queued, State::Blocked]);
    proptest!(ProptestConfig::with_cases(500), |(names in names, state in state)| {
        let frames: Vec<&str> = names.iter().map(String::as_str).collect();
        let class = classifier.classify(&frames, state);
        prop_assert_eq!(class.wait.is_some(), state == State::Blocked);
        prop_assert_eq!(class.layer == Layer::CpuQueue, state == State::Queued);
        match class.wait {
            Some(wait) if wait != Wait::Unknown => {
                prop_assert!([wait.layer(), wait.layer_of_own()].contains(&Some(class.layer)));
                prop_assert_eq!(classifier.on_path(&frames), wait.on_path());
            }
            _ => {}
        }
        // Suffixes of compilers change nothing.
        let cold: Vec<String> = names.iter().map(|n| format!("{n}.constprop.0")).collect();
        let cold: Vec<&str> = cold.iter().map(String::as_str).collect();
        prop_assert_eq!(classifier.classify(&cold, state), class);
    });
}

#[test]
fn calls_have_their_operation_under_every_spelling_of_their_entry() {
    let classifier = Classifier::new();
    for (call, operation) in [
        ("pread64", Operation::Read),
        ("writev", Operation::Write),
        ("fdatasync", Operation::Sync),
        ("openat", Operation::Open),
        ("newfstatat", Operation::Stat),
        ("getdents64", Operation::Names),
        ("io_uring_enter", Operation::Ring),
        ("getpid", Operation::Other),
        ("not_yet_invented", Operation::Other),
    ] {
        assert_eq!(classifier.operation_of_call(call), operation, "{call}");
        for prefix in ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "__ia32_compat_sys_"] {
            let frame = format!("{prefix}{call}");
            assert_eq!(classifier.classify(&[&frame], State::Running).operation, operation, "{frame}");
        }
    }
}

#[test]
fn what_no_table_knows_is_unexplained() {
    let classifier = Classifier::new();
    let class = classifier.classify(&["zzz_unheard_of", "zzz_outer"], State::Running);
    assert_eq!((class.operation, class.layer), (Operation::Unknown, Layer::Unexplained));
    let class = classifier.classify(&["schedule", "zzz_unheard_of", "__x64_sys_read"], State::Blocked);
    assert_eq!(
        (class.operation, class.layer, class.wait),
        (Operation::Read, Layer::Unexplained, Some(Wait::Unknown))
    );
    assert_eq!(classifier.classify(&[], State::Running).layer, Layer::Program);
}

#[test]
fn functions_without_a_line_mean_what_their_source_file_says() {
    let classifier = Classifier::new();
    for (function, layer) in [
        ("cow_file_range_inline", Layer::Filesystem),
        // Prefixes by hand would say the block layer, and off the path.
        ("bio_get_trace_info", Layer::Filesystem),
        ("sched_rq_cmp", Layer::Block),
        // A module goes before the source file of a function of the same name in the kernel itself.
        ("sched_rq_cmp [virtio_blk]", Layer::Device),
        // Files are not known, a fallback prefix is.
        ("sysfs_not_yet_invented", Layer::Elsewhere),
    ] {
        assert_eq!(classifier.classify(&[function], State::Running).layer, layer, "{function}");
    }
    // The scheduler is looked through.
    let stack = ["try_to_block_task", "__schedule", "vfs_read", "__x64_sys_read"];
    assert_eq!(classifier.classify(&stack, State::Running).layer, Layer::Filesystem);
}

#[test]
fn a_wait_below_built_in_code_is_that_below_the_module() {
    let classifier = Classifier::new();
    for function in ["pnfs_update_layout", "not_yet_invented [nfsv4]"] {
        let stack = ["schedule", "io_schedule", "folio_wait_bit_common", function, "__x64_sys_read"];
        assert_eq!(classifier.classify(&stack, State::Blocked).wait, Some(Wait::Server), "{function}");
    }
}

#[test]
fn programs_of_filters_are_no_tracers() {
    let of = |frames: &[&str]| Classifier::new().classify(frames, State::Running).operation;
    let call = ["syscall_trace_enter", "do_syscall_64", "entry_SYSCALL_64_after_hwframe"];
    let through = |frames: &[&str]| of(&[frames, &call[..]].concat());
    assert_eq!(
        through(&["bpf_prog_0e295755cf636cee", "bpf_trace_run2", "__bpf_trace_sys_exit"]),
        Operation::Observer
    );
    assert_ne!(
        through(&["bpf_prog_0e295755cf636cee", "__seccomp_filter", "__secure_computing"]),
        Operation::Observer
    );
}
