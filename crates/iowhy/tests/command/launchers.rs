//! Launchers of parallel jobs, each with four ranks of the binary: Open MPI, MPICH, and Slurm with two nodes of its own on this
//! machine. What is not installed is skipped aloud; the packages are Debian's.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{binary, directory, is_root, skipped, succeeds, text};

/// Something that starts four ranks.
pub(crate) struct Launcher {
    program: &'static str,
    words: &'static [&'static str],
    environment: Vec<(&'static str, String)>,
    /// The variable by which a rank knows its number.
    pub(crate) rank: &'static str,
    /// How the name of a job begins; `None` where the launcher gives it none.
    job: Option<&'static str>,
    /// Runs as long as the launcher is held.
    _cluster: Option<Cluster>,
}

impl Launcher {
    /// The launcher with the binary, ready for the binary's words.
    pub(crate) fn command(&self) -> Command {
        let mut command = outside_of_jobs(self.program);
        command.args(self.words).arg(binary().get_program()).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Whether this record has the name of the launcher's job, or none where it gives none.
    pub(crate) fn names_job(&self, record: &Value) -> bool {
        match (self.job, record["job"].as_str()) {
            (Some(begin), Some(job)) => job.starts_with(begin),
            (expected, found) => expected.is_none() && found.is_none(),
        }
    }
}

/// A program that knows nothing of a job that the tests themselves are in.
fn outside_of_jobs(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let of_job = |begin: &&str| name.to_string_lossy().starts_with(*begin);
        if ["SLURM", "PMI", "OMPI_", "HYDRA", "MPI"].iter().any(of_job) {
            command.env_remove(name);
        }
    }
    command
}

/// Which of these programs says this of itself: Debian has more than one `mpirun`.
fn that_says(programs: &[&'static str], words: &str) -> Option<&'static str> {
    let says = |program: &&&str| {
        let asked = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        asked.is_ok_and(|asked| String::from_utf8_lossy(&asked.stdout).contains(words))
    };
    programs.iter().find(says).copied()
}

pub(crate) fn open_mpi() -> Option<Launcher> {
    let Some(program) = that_says(&["mpirun.openmpi", "mpirun"], "Open MPI") else {
        skipped("Open MPI is not installed (Debian package `openmpi-bin`)");
        return None;
    };
    Some(Launcher {
        program,
        words: &["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "4"],
        environment: vec![("OMPI_MCA_rmaps_base_oversubscribe", "1".to_owned())],
        rank: "OMPI_COMM_WORLD_RANK",
        job: Some("PMIX_NAMESPACE="),
        _cluster: None,
    })
}

pub(crate) fn mpich() -> Option<Launcher> {
    let Some(program) = that_says(&["mpirun.mpich", "mpirun"], "HYDRA") else {
        skipped("MPICH is not installed (Debian package `mpich`)");
        return None;
    };
    Some(Launcher {
        program,
        words: &["-n", "4"],
        environment: Vec::new(),
        rank: "PMI_RANK",
        job: None,
        _cluster: None,
    })
}

pub(crate) fn slurm() -> Option<Launcher> {
    // srun(1) without a cluster does not even say its version.
    let there = |program: &&str| succeeds("sh", &["-c", &format!("command -v {program}")]);
    if !["munged", "slurmctld", "slurmd", "srun", "sinfo"].iter().all(there) {
        skipped("Slurm is not installed (Debian packages `slurmctld`, `slurmd` and `slurm-client`)");
        return None;
    }
    if !is_root() {
        skipped("nodes of Slurm are started by root alone");
        return None;
    }
    let cluster = Cluster::start();
    let environment = vec![("SLURM_CONF", text(&cluster.folder.path().join("slurm.conf")).to_owned())];
    Some(Launcher {
        program: "srun",
        words: &["--nodes=2", "--ntasks=4", "--overcommit", "--immediate=60", "--time=3"],
        environment,
        rank: "SLURM_PROCID",
        job: Some("SLURM_JOB_ID="),
        _cluster: Some(cluster),
    })
}

/// A cluster that listens on this machine's loopback alone, with its key, state and logs in one folder.
struct Cluster {
    daemons: Vec<Child>,
    folder: TempDir,
}

impl Cluster {
    fn start() -> Self {
        let folder = directory();
        let host = String::from_utf8(Command::new("uname").arg("-n").output().unwrap().stdout).unwrap();
        std::fs::write(folder.path().join("slurm.conf"), settings(folder.path(), host.trim())).unwrap();
        std::fs::write(folder.path().join("key"), key()).unwrap();
        assert!(succeeds("chmod", &["600", text(&folder.path().join("key"))]));
        let mut cluster = Self { daemons: Vec::new(), folder };
        let at = |name: &str, file: &str| format!("--{name}={}", text(&cluster.folder.path().join(file)));
        let munged = [
            at("key-file", "key"),
            at("socket", "socket"),
            at("pid-file", "munged.pid"),
            at("log-file", "munged.log"),
            at("seed-file", "seed"),
            "--force".to_owned(),
            "--foreground".to_owned(),
        ];
        cluster.daemon("munged", &munged);
        let socket = cluster.folder.path().join("socket");
        until(&cluster, "munged makes its socket", || socket.exists());
        cluster.daemon("slurmctld", &["-D".to_owned()]);
        for node in ["n1", "n2"] {
            cluster.daemon("slurmd", &["-D".to_owned(), "-N".to_owned(), node.to_owned()]);
        }
        until(&cluster, "both nodes are idle", || {
            let asked = cluster.tool("sinfo").args(["--noheader", "--format=%T %D"]).output();
            asked.is_ok_and(|asked| asked.stdout.starts_with(b"idle 2"))
        });
        cluster
    }

    /// A program that finds this cluster and no other.
    fn tool(&self, program: &str) -> Command {
        let mut command = outside_of_jobs(program);
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf")).stdin(Stdio::null());
        command
    }

    fn daemon(&mut self, program: &str, words: &[String]) {
        // It ends with the test, however that ends.
        let mut command = self.tool("setpriv");
        command
            .args(["--pdeathsig", "TERM", program])
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.daemons.push(command.spawn().unwrap());
    }

    /// What the daemons wrote, for a failure.
    fn logs(&self) -> String {
        let files = ["munged.log", "slurmctld.log", "slurmd-n1.log", "slurmd-n2.log"];
        files
            .map(|file| std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default())
            .join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The nodes first: they sign off at the controller. Each of the calls fails only when it has ended already.
        for daemon in self.daemons.iter_mut().rev() {
            succeeds("kill", &["-TERM", &daemon.id().to_string()]);
            let until = Instant::now() + Duration::from_secs(10);
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn until(cluster: &Cluster, what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < end, "{what}: not within 60 s\n{}", cluster.logs());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A key that nobody else has: 1 KiB of the kernel's random bytes.
fn key() -> Vec<u8> {
    let mut key = vec![0; 1024];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut key).unwrap();
    key
}

/// slurm.conf(5): two nodes of two CPUs each on one machine, at ports that are free now.
fn settings(folder: &Path, host: &str) -> String {
    let held: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let [controller, first, second] = [0, 1, 2].map(|i: usize| held[i].local_addr().unwrap().port());
    let folder = text(folder);
    format!(
        "ClusterName=iowhy\n\
         SlurmctldHost={host}(127.0.0.1)\n\
         SlurmctldPort={controller}\n\
         SlurmUser=root\n\
         CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n\
         AuthType=auth/munge\n\
         AuthInfo=socket={folder}/socket\n\
         StateSaveLocation={folder}/state\n\
         SlurmdSpoolDir={folder}/spool-%n\n\
         SlurmctldPidFile={folder}/slurmctld.pid\n\
         SlurmdPidFile={folder}/slurmd-%n.pid\n\
         SlurmctldLogFile={folder}/slurmctld.log\n\
         SlurmdLogFile={folder}/slurmd-%n.log\n\
         ProctrackType=proctrack/pgid\n\
         TaskPlugin=task/none\n\
         MpiDefault=none\n\
         SelectType=select/cons_tres\n\
         SelectTypeParameters=CR_Core\n\
         AccountingStorageType=accounting_storage/none\n\
         JobAcctGatherType=jobacct_gather/none\n\
         SwitchType=switch/none\n\
         NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=2\n\
         NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=2\n\
         PartitionName=all Nodes=n1,n2 Default=YES OverSubscribe=FORCE:4\n"
    )
}
