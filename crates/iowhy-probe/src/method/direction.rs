//! Whether a method can do what a workload asks of it: checked once for all families, before anything is opened.

use iowhy_core::problem::Problem;
use iowhy_core::workload::{Direction, Method, Workload};

/// Refuses a direction that the workload's method does not have.
///
/// # Errors
/// Names the method and the ones that would do.
pub(super) fn check(workload: &Workload) -> Result<(), Problem> {
    let method = workload.method;
    let can = |m: Method| match workload.direction {
        Direction::Read => m.can_read(),
        Direction::Write => m.can_write(),
        Direction::Mixed(_) => m.can_read() && m.can_write(),
    };
    let needed = match workload.direction {
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
    use iowhy_core::workload::CacheState;

    use super::*;

    #[test]
    fn directions_are_refused_with_what_would_work() {
        let mut workload = Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20);
        assert!(check(&workload).is_ok());
        workload.direction = Direction::Mixed(50);
        let hint = check(&workload).unwrap_err().hint.unwrap();
        assert_eq!(hint, "use `--method direct` or `--method uring`");
        workload.direction = Direction::Write;
        assert!(check(&workload).unwrap_err().message.contains("`pread` cannot write"));
        workload.method = Method::Fallocate;
        assert!(check(&workload).is_ok());
        workload.direction = Direction::Read;
        assert!(check(&workload).is_err());
    }
}
