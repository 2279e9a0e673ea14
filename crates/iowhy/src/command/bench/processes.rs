//! Ranks that iowhy starts itself on this machine, where no launcher did: the same command, with the variables of a launcher.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_linux::host;

use crate::rank;
use crate::record::rank::RankRecord;

/// Processes of one machine at most; more come from a launcher.
const MAX_PROCESSES: u64 = 1024;
/// How long they may take to leave a run that failed; they wait for each other no longer than two seconds.
const GRACE: Duration = Duration::from_secs(3);
/// Between two looks at whether they have.
const PAUSE: Duration = Duration::from_millis(10);

/// The ranks from 1 on; this process is rank 0.
pub(super) struct Processes {
    job: String,
    ranks: u64,
    children: Vec<Child>,
}

impl Processes {
    /// Before any of them is started.
    ///
    /// # Errors
    /// A number that is missing, or too great for one machine.
    pub(super) fn new(ranks: Option<u64>) -> Result<Processes, Problem> {
        let Some(ranks) = ranks else {
            return Err(Problem::refused(
                "`--ranks`: no launcher of a parallel job started this process, and how many are to be started is unknown",
            )
            .hint("`mpirun -n 4 iowhy bench --ranks DIR`, or `iowhy bench --ranks=4 DIR` for 4 processes on this machine"));
        };
        if ranks > MAX_PROCESSES {
            return Err(Problem::refused(format!(
                "{ranks} ranks: iowhy starts {MAX_PROCESSES} processes on one machine at most"
            ))
            .hint("start them by mpirun or srun, on more machines"));
        }
        Ok(Processes { job: format!("iowhy-{}", host::random_id()), ranks, children: Vec::new() })
    }

    /// This process as one of them.
    ///
    /// # Errors
    /// Variables of another launcher contradict.
    pub(super) fn own(&self) -> Result<RankRecord, Problem> {
        let own = rank::with(&rank::variables(0, self.ranks, &self.job))?;
        own.ok_or_else(|| Problem::failed("the ranks that iowhy starts have no number"))
    }

    /// Starts them.
    ///
    /// # Errors
    /// What the system says; those that run see that rank 0 does not come.
    pub(super) fn start(&mut self) -> Result<(), Problem> {
        let cannot = |error: std::io::Error| {
            Problem::failed(format!("cannot start {} processes of iowhy: {error}", self.ranks))
                .hint("`ulimit -u` and the control group (pids.max) limit their number")
        };
        let program = std::env::current_exe().map_err(cannot)?;
        for number in 1..self.ranks {
            let mut command = Command::new(&program);
            command.args(std::env::args_os().skip(1)).stdin(Stdio::null()).stdout(Stdio::null());
            command.envs(rank::variables(number, self.ranks, &self.job));
            self.children.push(command.spawn().map_err(cannot)?);
        }
        Ok(())
    }

    /// Waits for them after a run that ended well.
    pub(super) fn wait(mut self) {
        for mut child in std::mem::take(&mut self.children) {
            let _ = child.wait();
        }
    }
}

impl Drop for Processes {
    /// Where a rank failed: one of them may still be removing what the run left; those that have not seen it by then are ended.
    fn drop(&mut self) {
        let until = Instant::now() + GRACE;
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
