//! Who is found from options and environment; what a thread may do as somebody else.

use std::io::Write;
use std::os::unix::fs::MetadataExt;

use super::*;

struct Known;

fn entry(name: &str, uid: u32) -> Entry {
    let home = PathBuf::from(format!("/home/{name}"));
    Entry { name: name.to_owned(), uid, gid: uid + 1, home, shell: "/bin/sh".into() }
}

impl Users for Known {
    fn by_name(&self, name: &str) -> Result<Option<Entry>, Problem> {
        let all = [("root", 0), ("alice", 1000), ("bob", 1001), ("77", 1077)];
        Ok(all.into_iter().find(|(n, _)| *n == name).map(|(n, uid)| entry(n, uid)))
    }

    fn by_uid(&self, uid: u32) -> Result<Option<Entry>, Problem> {
        let all = [("root", 0), ("alice", 1000), ("bob", 1001)];
        Ok(all.into_iter().find(|(_, u)| *u == uid).map(|(n, uid)| entry(n, uid)))
    }

    fn groups(&self, _name: &str, gid: u32) -> Vec<u32> {
        vec![gid, 27]
    }
}

fn find(request: Request<'_>, uid: u32, environment: &[(&str, &str)]) -> Result<Option<Identity>, Problem> {
    let variable =
        |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
    Identity::find(request, uid, &variable, &Known)
}

#[test]
fn under_sudo_it_is_the_caller_with_all_groups() {
    let alice = find(Request::Caller, 0, &[("SUDO_UID", "1000"), ("SUDO_GID", "50")]).unwrap().unwrap();
    assert_eq!((alice.uid, alice.gid, alice.groups.as_slice()), (1000, 50, &[50, 27][..]));
    assert!(alice.switches() && alice.words() == "user alice (uid 1000)", "{alice:?}");
    let home = alice.environment().into_iter().find(|(name, _)| *name == "HOME").unwrap().1;
    assert_eq!(home, Some("/home/alice".into()));
    let by_pkexec = find(Request::Caller, 0, &[("PKEXEC_UID", "1001")]).unwrap().unwrap();
    assert_eq!((by_pkexec.uid, by_pkexec.gid), (1001, 1002));
    let by_doas = find(Request::Caller, 0, &[("DOAS_USER", "bob")]).unwrap().unwrap();
    assert_eq!(by_doas, by_pkexec);
}

#[test]
fn a_number_without_an_entry_has_its_own_group_alone() {
    let found = find(Request::Caller, 0, &[("SUDO_UID", "4242"), ("SUDO_GID", "43")]).unwrap().unwrap();
    assert_eq!((found.uid, found.gid, found.groups.as_slice()), (4242, 43, &[43][..]));
    assert_eq!(found.words(), "uid 4242");
    let [home, user, logname, shell] = found.environment().map(|(_, value)| value);
    assert_eq!((home, user, logname, shell), (Some("/".into()), None, None, None));
    let asked = find(Request::User("4242"), 0, &[]).unwrap().unwrap();
    assert_eq!((asked.uid, asked.gid), (4242, 4242));
    let asked = find(Request::User("4242"), 0, &[("SUDO_UID", "4242"), ("SUDO_GID", "43")]).unwrap().unwrap();
    assert_eq!(asked.gid, 43);
}

#[test]
fn nobody_called_means_nobody_else() {
    for (uid, environment) in [
        (0, &[][..]),
        (0, &[("SUDO_UID", "0"), ("SUDO_GID", "0")]),
        // Without root's rights anybody can set these.
        (1000, &[("SUDO_UID", "1001"), ("SUDO_GID", "0")]),
        (1000, &[("SUDO_UID", "x")]),
        (1000, &[("DOAS_USER", "bob")]),
    ] {
        assert_eq!(find(Request::Caller, uid, environment), Ok(None), "{uid} {environment:?}");
    }
}

#[test]
fn a_damaged_number_is_refused_and_never_root() {
    for text in ["", "x", "-1", "+5", "4294967295", "4294967296", "1000 ", "1e3"] {
        let problem = find(Request::Caller, 0, &[("SUDO_UID", text)]).unwrap_err();
        assert!(problem.exit_code() == 2 && problem.hint.unwrap().contains("--as-root"), "{text}");
        assert!(find(Request::Caller, 0, &[("SUDO_UID", "1000"), ("SUDO_GID", text)]).is_err(), "{text}");
    }
    assert!(find(Request::Caller, 0, &[("DOAS_USER", "nobody-here")]).is_err());
}

#[test]
fn the_options_decide_over_the_environment() {
    let sudo = [("SUDO_UID", "1000"), ("SUDO_GID", "1000")];
    let root = find(Request::Root, 0, &sudo).unwrap().unwrap();
    assert!(root.uid == 0 && !root.switches(), "{root:?}");
    let bob = find(Request::User("bob"), 0, &sudo).unwrap().unwrap();
    assert_eq!((bob.uid, bob.gid), (1001, 1002), "the caller's group is not bob's");
    assert_eq!(find(Request::User("1001"), 0, &sudo).unwrap().unwrap(), bob);
    assert_eq!(find(Request::User("77"), 0, &sudo).unwrap().unwrap().uid, 1077, "a name before a number");
    assert!(!find(Request::User("root"), 0, &sudo).unwrap().unwrap().switches());
}

#[test]
fn without_root_only_oneself_can_be_asked_for() {
    let own = find(Request::User("alice"), 1000, &[]).unwrap().unwrap();
    assert!(!own.switches() && own.uid == 1000);
    for request in [Request::User("bob"), Request::User("0"), Request::User("root"), Request::Root] {
        let problem = find(request, 1000, &[]).unwrap_err();
        assert!(problem.exit_code() == 2 && problem.hint.unwrap().contains("sudo iowhy"), "{request:?}");
    }
    for text in ["carol", "", "4294967295", "-1", "a\0b"] {
        let problem = find(Request::User(text), 0, &[]).unwrap_err();
        assert!(problem.message.contains("--user") && problem.hint.is_some(), "{text}");
    }
}

#[test]
fn the_system_knows_root() {
    let root = SystemUsers.by_uid(0).unwrap();
    let Some(root) = root else {
        skipped("this system has no entry for user 0");
        return;
    };
    assert_eq!(SystemUsers.by_name(&root.name).unwrap(), Some(root.clone()));
    assert!(SystemUsers.groups(&root.name, 4321).contains(&4321));
    assert_eq!(SystemUsers.by_name("no such user anywhere").unwrap(), None);
}

/// Past `eprintln!`, whose output is swallowed for tests that pass.
fn skipped(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

fn nobody() -> Option<Identity> {
    // SAFETY: takes nothing and returns a plain number.
    let identity = without_entry(65_534, Some(65_534), unsafe { libc::geteuid() });
    if !identity.switches() || identity.for_files().is_err() {
        skipped("only root can act as another user");
        return None;
    }
    Some(identity)
}

#[test]
fn files_belong_to_the_user_and_root_comes_back() {
    let Some(nobody) = nobody() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let closed = folder.path().join("closed");
    std::fs::write(&closed, "root's").unwrap();
    std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let made = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        let facts = std::fs::metadata(path).unwrap();
        (facts.uid(), facts.gid())
    };
    let groups = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = |text: &str| text.lines().find(|l| l.starts_with("Groups:")).unwrap().to_owned();
    let before = line(&groups());
    {
        let _files = nobody.for_files().unwrap();
        assert_eq!(made("own"), (65_534, 65_534));
        assert_eq!(line(&groups()).split_whitespace().collect::<Vec<_>>(), ["Groups:", "65534"]);
        assert!(std::fs::read(&closed).is_err(), "root's right to pass over permissions is gone");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(made("of-a-thread"), (65_534, 65_534));
                assert_eq!(FileOwner::of_thread().map(|o| (o.uid, o.groups)), Some((65_534, vec![65_534])));
            });
        });
        {
            let _again = nobody.for_files().unwrap();
            let _root = as_self();
            assert!(std::fs::read(&closed).is_ok(), "as ourselves");
        }
        assert!(std::fs::read(&closed).is_err(), "the inner guards gave back what they found");
    }
    assert_eq!(FileOwner::of_thread(), None);
    assert!(std::fs::read(&closed).is_ok() && line(&groups()) == before);
    // SAFETY: both calls take nothing and return plain numbers.
    assert_eq!(made("roots"), unsafe { (libc::geteuid(), libc::getegid()) });
}

#[test]
fn the_signal_for_the_death_of_the_parent_stays() {
    let Some(nobody) = nobody() else { return };
    let signal = || {
        let mut signal: libc::c_int = 0;
        // SAFETY: the kernel writes one int to the address.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal, 0, 0, 0) }, 0);
        signal
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: takes plain numbers; the setting is that of this thread, which ends.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::c_ulong::from(libc::SIGCONT as u32), 0, 0, 0)
            };
            let files = nobody.for_files().unwrap();
            assert_eq!(signal(), libc::SIGCONT);
            drop(as_self());
            drop(files);
            assert_eq!(signal(), libc::SIGCONT);
        });
    });
}

#[test]
fn other_threads_keep_their_identity() {
    let Some(nobody) = nobody() else { return };
    let (entered, left) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _files = nobody.for_files().unwrap();
            entered.wait();
            left.wait();
        });
        entered.wait();
        let here = FileOwner::of_thread();
        left.wait();
        assert_eq!(here, None);
    });
}
