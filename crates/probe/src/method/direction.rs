//! Whether a method supports the direction of a workload: checked for all families before anything is opened.

use iowhy_core::problem::Problem;
use iowhy_core::workload::{Direction, Method};

/// Refuses a direction that a method does not have.
///
/// # Errors
/// Names the method and the ones that would do.
pub fn check(direction: Direction, method: Method) -> Result<(), Problem> {
    let can = |m: Method| match direction {
        Direction::Read => m.can_read(),
        Direction::Write => m.can_write(),
        Direction::Mixed(_) => m.can_read() && m.can_write(),
    };
    let needed = match direction {
        Direction::Read => "read",
        Direction::Write => "write",
        Direction::Mixed(_) => "mix reads and writes",
    };
    // The bare call moves nothing in either direction.
    if can(method) || method == Method::Syscall {
        return Ok(());
    }
    let others: Vec<_> = [Method::Pread, Method::Pwrite, Method::Direct, Method::Uring]
        .into_iter()
        .filter(|&m| can(m))
        .map(|m| format!("`--method {}`", m.id()))
        .collect();
    Err(Problem::refused(format!("method `{}` cannot {needed}", method.id()))
        .hint(format!("use {}", others.join(" or "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_refused_with_what_would_work() {
        assert!(check(Direction::Read, Method::Pread).is_ok());
        let hint = check(Direction::Mixed(50), Method::Pread).unwrap_err().hint.unwrap();
        assert_eq!(hint, "use `--method direct` or `--method uring`");
        assert!(check(Direction::Write, Method::Pread).unwrap_err().message.contains("`pread` cannot write"));
        assert!(check(Direction::Write, Method::Fallocate).is_ok());
        assert!(check(Direction::Read, Method::Fallocate).is_err());
    }
}
