//! Commands that remove a limitation. The one that changes nothing on the machine comes first; settings for every user of
//! the machine come last, and say so.

use iowhy_core::profile::Lack;

/// A line each. `command` is the command line; `privileged`: root ran it.
pub(crate) fn remedies(lacks: &[Lack], command: &str, privileged: bool) -> Vec<String> {
    let mut fixes: Vec<&str> = Vec::new();
    for fix in lacks.iter().filter_map(|lack| lack.fix.as_deref()) {
        if !fixes.contains(&fix) {
            fixes.push(fix);
        }
    }
    let mut lines = Vec::new();
    // In a container root has no more rights than its runtime gave it.
    if !privileged && fixes.iter().any(|fix| fix.starts_with("sudo ")) {
        lines.push(with_sudo(command));
    }
    let (machine, others): (Vec<&str>, Vec<&str>) = fixes.into_iter().partition(|fix| is_machine_wide(fix));
    lines.extend(others.into_iter().chain(machine).map(explained));
    lines
}

/// The same run with all rights.
pub(crate) fn with_sudo(command: &str) -> String {
    let command = if command.is_empty() { "iowhy -- CMD" } else { command };
    let stays = if command.contains(" -- ") && !command.contains(" --as-root ") {
        " (CMD still runs as you)"
    } else {
        ""
    };
    format!("`sudo {command}`{stays}")
}

/// A command, and whom it affects where that is more than this run.
pub(crate) fn explained(fix: &str) -> String {
    if is_machine_wide(fix) {
        format!("`{fix}` (holds for every user of this machine, until it restarts)")
    } else if fix.contains("setcap") {
        format!("`{fix}` (holds for everyone who may run this program)")
    } else {
        format!("`{fix}`")
    }
}

fn is_machine_wide(fix: &str) -> bool {
    fix.contains("sysctl ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lack(fix: Option<&str>) -> Lack {
        Lack { id: "x".into(), sentence: "no x".into(), fix: fix.map(str::to_owned) }
    }

    #[test]
    fn the_run_with_sudo_comes_first_and_settings_of_the_machine_last() {
        let sysctl = "sudo sysctl kernel.perf_event_paranoid=1";
        let lacks = [sysctl, "sudo setcap cap_perfmon=ep iowhy", sysctl].map(|fix| lack(Some(fix)));
        let lines = remedies(&lacks, "iowhy -- ls 'a b'", false);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], "`sudo iowhy -- ls 'a b'` (CMD still runs as you)");
        assert!(lines[1].contains("setcap") && lines[1].contains("everyone who may run this program"));
        assert!(lines[2].contains(sysctl) && lines[2].contains("every user of this machine"), "{lines:?}");
        assert!(remedies(&lacks, "iowhy -- ls", true).iter().all(|line| !line.contains("sudo iowhy")));
        assert_eq!(remedies(&lacks, "iowhy attach 7", false)[0], "`sudo iowhy attach 7`");
        assert!(remedies(&[lack(None)], "iowhy -- ls", false).is_empty());
        let docker = remedies(&[lack(Some("docker run --cap-add PERFMON ..."))], "iowhy -- ls", false);
        assert_eq!(docker, ["`docker run --cap-add PERFMON ...`"]);
    }
}
