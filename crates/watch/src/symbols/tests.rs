//! Names of this very test program, which has a symbol table, and of things that are no objects.

use super::*;

#[inline(never)]
fn a_function_with_a_name(x: u64) -> u64 {
    std::hint::black_box(x) + 1
}

#[test]
fn a_function_of_this_program_is_found_by_its_address() {
    let pid = std::process::id();
    let mut symbols = Symbols::with_kernel(Kernel::default());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    symbols.add_maps(pid, &maps);
    let id = symbols.user(pid, a_function_with_a_name as fn(u64) -> u64 as usize as u64 + 1);
    let name = symbols.name(id).to_owned();
    assert!(name.ends_with("a_function_with_a_name"), "{name}");
    // Whatever this program is called: its tests also run from a copy.
    let program = std::env::current_exe().unwrap();
    let object = symbols.table[id as usize].object.as_deref().unwrap().to_owned();
    assert_eq!(object, program.file_name().unwrap().to_str().unwrap());
    // The same function from a child, which has the same mappings.
    symbols.fork(pid, 7);
    assert_eq!(symbols.user(7, a_function_with_a_name as fn(u64) -> u64 as usize as u64 + 2), id);
    let vdso = maps.lines().find(|l| l.ends_with("[vdso]")).and_then(|l| l.split('-').next());
    if let Some(start) = vdso.and_then(|s| u64::from_str_radix(s, 16).ok()) {
        let id = symbols.user(pid, start + 8);
        assert_eq!(symbols.name(id), "[vdso]");
    }
}

#[test]
fn what_has_no_name_gets_the_name_of_its_object() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("no elf.txt");
    std::fs::write(&text, "not an object").unwrap();
    let mut s = Symbols::with_kernel(Kernel::default());
    s.add_maps(
        5,
        &format!(
            "1000-2000 r-xp 00000000 00:01 7 {}\n3000-4000 r-xp 00000000 00:00 0 \nbroken\n8000-9000 rw-p 0 0:0 0\n",
            text.display()
        ),
    );
    let mut name = |pid, address| {
        let id = s.user(pid, address);
        s.name(id).to_owned()
    };
    assert_eq!(name(5, 0x1500), "[no elf.txt]");
    assert_eq!(name(5, 0x3500), "[anonymous]");
    assert_eq!(name(5, 0x8500), "[anonymous]");
    assert_eq!(name(6, 0x1500), "[anonymous]");
    let id = s.kernel(1);
    assert_eq!(s.name(id), "[kernel]");
}

#[test]
fn a_pipe_in_place_of_an_object_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|s| s.success()) {
        println!("skipped: mkfifo cannot be run");
        return;
    }
    let mut s = Symbols::with_kernel(Kernel::default());
    s.map(1, 0, 4096, 0, &pipe.display().to_string());
    let id = s.user(1, 10);
    assert_eq!(s.name(id), "[pipe]");
}

/// A shared object of this process whose functions have names.
fn whole_object() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let paths: std::collections::BTreeSet<&str> =
        maps.lines().filter_map(|l| l.find('/').map(|at| &l[at..])).collect();
    let named = |path: &&str| {
        Functions::read(File::open(path).ok()?, 100_000, |_| None).filter(|f| f.len() > 0).map(|_| ())
    };
    let path = paths.into_iter().filter(|path| path.contains(".so")).find(|path| named(path).is_some())?;
    std::fs::read(path).ok()
}

#[test]
fn a_broken_object_gives_few_names_and_does_no_harm() {
    let Some(whole) = whole_object() else {
        eprintln!("skipped: no shared object of this process names its functions");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut rng = iowhy_core::rng::Rng::new(1);
    let mut read = 0;
    for round in 0..60 {
        let mut bytes = whole.clone();
        // The header, the tables at the end, anywhere.
        let length = bytes.len();
        let (from, changes) =
            [(0..64, 4), (length.saturating_sub(4096)..length, 16), (0..length, 4096)][round % 3].clone();
        for _ in 0..changes {
            let at = from.start + rng.below((from.end - from.start) as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        bytes[..4].copy_from_slice(b"\x7fELF");
        let path = dir.path().join("object");
        std::fs::write(&path, &bytes).unwrap();
        // What it says of its build is believed of no other file, and its own names are those of a broken file.
        let separate = |_: &BuildId| File::open(&path).ok();
        if let Some(f) = Functions::read(File::open(&path).unwrap(), 100_000, separate) {
            read += 1;
            assert!(f.len() <= 100_000);
            for offset in [0, 4096, u64::MAX] {
                let _ = f.find(offset).and_then(|i| f.name(i));
            }
        }
    }
    assert!(read > 0, "no change left an object that can be read");
}

#[test]
fn a_kernel_function_keeps_its_module() {
    let text = "ffffffff81000200 T vfs_read\nffffffffc0000000 t ll_file_read\t[lustre]\n";
    let mut s = Symbols::with_kernel(Kernel::parse(text));
    let (built_in, module) = (s.kernel(0xffff_ffff_8100_0210), s.kernel(0xffff_ffff_c000_0010));
    assert_eq!((s.frame(built_in).as_ref(), s.frame(module).as_ref()), ("vfs_read", "ll_file_read [lustre]"));
    // What /proc/PID/stack names is the same function.
    assert_eq!((s.named("vfs_read"), s.named("ll_file_read [lustre]")), (built_in, module));
    assert_ne!(s.named("ll_file_read"), module);
}

/// Runs a tool that came with the linker.
fn run(program: &str, arguments: &[&str]) {
    let ran = std::process::Command::new(program).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_stripped_file_has_the_names_that_its_packages_left_beside_it() {
    const MOST: usize = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let [source, program, names, stripped] = ["program.c", "program", "names", "stripped"].map(at);
    // Two builds of one shape: what the names of one say of the other would be wrong.
    let build = |function: &str| {
        let text = format!(
            "static __attribute__((noinline)) int {function}(int n) {{ return n * 3; }}\n\
             int main(int argc, char **argv) {{ return {function}(argc); }}\n"
        );
        std::fs::write(&source, text).unwrap();
        run("cc", &["-O1", "-fno-inline", "-Wl,--build-id", "-o", &program, &source]);
    };
    let open = |path: &str| File::open(path).unwrap();
    build("another_hidden_function");
    run("objcopy", &["--only-keep-debug", &program, &at("of another build")]);
    build("hidden_function");
    run("objcopy", &["--only-keep-debug", &program, &names]);
    run("strip", &["-o", &stripped, &program]);

    let whole = Functions::read(open(&program), MOST, |_| None).unwrap();
    let length = std::fs::metadata(&program).unwrap().len();
    let name = |functions: &Functions, offset| functions.find(offset).and_then(|i| functions.name(i));
    let place =
        (0..length).find(|offset| name(&whole, *offset).as_deref() == Some("hidden_function")).unwrap();
    let with = |names: Option<&str>| {
        let functions = Functions::read(open(&stripped), MOST, |_| names.map(open))?;
        name(&functions, place)
    };
    assert_eq!(with(Some(&names)).as_deref(), Some("hidden_function"));
    for others in [None, Some(&*at("of another build")), Some(&*source)] {
        assert_ne!(with(others).as_deref(), Some("hidden_function"), "{others:?}");
        assert_ne!(with(others).as_deref(), Some("another_hidden_function"), "{others:?}");
    }
    // Not asked for where the file has its own.
    assert!(Functions::read(open(&program), MOST, |_| panic!("it has its own names")).is_some());
    // By the name of the build, below a folder that is looked at: root's only.
    std::fs::create_dir(at("ab")).unwrap();
    std::fs::copy(&names, at("ab/cd01.debug")).unwrap();
    let found = file_of_names(dir.path(), &vec![0xab, 0xcd, 0x01]);
    assert_eq!(found.is_some(), rustix::process::geteuid().is_root());
    assert!(file_of_names(dir.path(), &vec![0xab, 0xcd, 0x02]).is_none());
}
