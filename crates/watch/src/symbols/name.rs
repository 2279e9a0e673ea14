//! The name a reader knows a function by: compiler suffixes off, mangling undone. Pure functions.

/// Suffixes that compilers add to clones of a function. What follows them is a number or a hash.
const SUFFIXES: [&str; 5] = [".isra.", ".part.", ".constprop.", ".cold", ".llvm."];

/// Longest name that is kept, in bytes. Names of C++ templates can reach megabytes.
const LONGEST: usize = 256;

/// A kernel symbol without compiler suffixes: `__mutex_lock.constprop.0` is `__mutex_lock`.
pub(crate) fn strip(name: &str) -> &str {
    let end = SUFFIXES.iter().filter_map(|s| name.find(s)).min().unwrap_or(name.len());
    // A name that is nothing but a suffix stays as it is.
    if end == 0 { name } else { &name[..end] }
}

/// A symbol of a user object, demangled if it is of Rust or C++, without arguments, hashes and suffixes.
pub(crate) fn readable(raw: &str) -> String {
    let mut name = if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        format!("{rust:#}")
    } else if raw.starts_with("_Z") {
        cpp(raw).unwrap_or_else(|| strip(raw).to_owned())
    } else {
        strip(raw).to_owned()
    };
    if name.len() > LONGEST {
        let mut end = LONGEST;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
    }
    name
}

/// A C++ name without its parameters. `None` if it is not one.
fn cpp(raw: &str) -> Option<String> {
    // Deeper nesting than any person wrote costs time without end in a demangler.
    if raw.len() > 4096 {
        return None;
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(raw).ok()?.demangle_with_options(&options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_have_the_name_of_their_function() {
        assert_eq!(strip("__mutex_lock.constprop.0"), "__mutex_lock");
        assert_eq!(strip("f.isra.0.cold"), "f");
        assert_eq!(strip("f.part.12"), "f");
        assert_eq!(strip("f.llvm.123456"), "f");
        assert_eq!(strip("vfs_read"), "vfs_read");
        assert_eq!(strip(".cold"), ".cold");
    }

    #[test]
    fn rust_and_cpp_names_are_read() {
        assert_eq!(
            readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(readable("_ZN3foo3barEi"), "foo::bar");
        assert_eq!(readable("pread64"), "pread64");
        assert!(readable(&"x".repeat(5000)).len() <= LONGEST);
    }
}
