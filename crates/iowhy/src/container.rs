//! `--container NAME|ID`: the control group of a container. Engines put its identifier into the name of the group, and its name
//! into files of their own: Docker, Podman, and the log links of Kubernetes. No engine is asked, none need run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_linux::control_group;
use serde_json::Value;

/// Hexadecimal digits of an identifier (OCI engines: 256 random bits).
const ID_DIGITS: usize = 64;
/// Shorter beginnings of an identifier are taken for names.
const FEW_DIGITS: usize = 4;
/// Files of engines are read up to this size.
const MAX_BYTES: u64 = 16 << 20;
/// So many containers are listed in an error.
const LISTED: usize = 8;

/// Where engines keep names; paths of the running system, or of a test.
struct Places {
    docker: PathBuf,
    podman: Vec<PathBuf>,
    kubernetes: PathBuf,
}

impl Places {
    fn of_system() -> Places {
        let store = "containers/storage/overlay-containers/containers.json";
        let own = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share").join(store));
        let podman = [Some(Path::new("/var/lib").join(store)), own].into_iter().flatten().collect();
        let docker = PathBuf::from("/var/lib/docker/containers");
        Places { docker, podman, kubernetes: PathBuf::from("/var/log/containers") }
    }

    /// The names of each identifier.
    fn names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for id in entries(&self.docker) {
            if let Some(name) = json(&self.docker.join(&id).join("config.v2.json"))
                .and_then(|told| Some(told.get("Name")?.as_str()?.trim_start_matches('/').to_owned()))
            {
                names.entry(id).or_default().insert(name);
            }
        }
        for store in &self.podman {
            for container in json(store).as_ref().and_then(Value::as_array).into_iter().flatten() {
                let Some(id) = container.get("id").and_then(Value::as_str) else { continue };
                let told = container.get("names").and_then(Value::as_array).into_iter().flatten();
                names
                    .entry(id.to_owned())
                    .or_default()
                    .extend(told.filter_map(Value::as_str).map(str::to_owned));
            }
        }
        // POD_NAMESPACE_CONTAINER-ID.log
        for link in entries(&self.kubernetes) {
            let Some((told, id)) = link.strip_suffix(".log").and_then(|rest| rest.rsplit_once('-')) else {
                continue;
            };
            let parts: Vec<&str> = told.split('_').collect();
            if let [pod, namespace, container] = parts[..] {
                let all = [
                    pod.to_owned(),
                    format!("{namespace}/{pod}"),
                    format!("{pod}/{container}"),
                    container.to_owned(),
                ];
                names.entry(id.to_owned()).or_default().extend(all);
            }
        }
        names
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn json(path: &Path) -> Option<Value> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The control group of a running container, below the root of its hierarchy.
///
/// # Errors
/// No running container has this name or identifier, or several have.
pub(crate) fn group(wanted: &str) -> Result<PathBuf, Problem> {
    found(wanted, &running(control_group::all()), &Places::of_system().names())
}

/// Groups of containers by identifier: the outermost whose last part holds it. Groups of an engine's own monitor are none.
fn running(groups: BTreeSet<PathBuf>) -> BTreeMap<String, PathBuf> {
    let mut of_containers: BTreeMap<String, PathBuf> = BTreeMap::new();
    for group in groups {
        let Some(name) = group.file_name().and_then(|name| name.to_str()) else { continue };
        if name.contains("conmon") {
            continue;
        }
        let id = name.split(|c: char| !c.is_ascii_hexdigit()).find(|part| part.len() == ID_DIGITS);
        if let Some(id) = id {
            // The set is in order: a group comes before those below it.
            of_containers.entry(id.to_owned()).or_insert(group);
        }
    }
    of_containers
}

fn found(
    wanted: &str,
    running: &BTreeMap<String, PathBuf>,
    names: &BTreeMap<String, BTreeSet<String>>,
) -> Result<PathBuf, Problem> {
    let is_id = wanted.len() >= FEW_DIGITS && wanted.chars().all(|c| c.is_ascii_hexdigit());
    let named = |id: &String| names.get(id).is_some_and(|names| names.contains(wanted));
    let matches: Vec<(&String, &PathBuf)> =
        running.iter().filter(|(id, _)| named(id) || is_id && id.starts_with(wanted)).collect();
    let listed = |ids: Vec<&String>| {
        let one = |id: &&String| {
            let names = names.get(*id).map_or(String::new(), |names| {
                format!(" ({})", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
            });
            format!("{}{names}", &id[..12.min(id.len())])
        };
        let more =
            if ids.len() > LISTED { format!(" and {} more", ids.len() - LISTED) } else { String::new() };
        format!("{}{more}", ids.iter().take(LISTED).map(one).collect::<Vec<_>>().join(", "))
    };
    match matches.as_slice() {
        [(_, group)] => Ok((*group).clone()),
        [] => {
            let hint = match running.is_empty() {
                true => "no control group here is named like a container of Docker, Podman, containerd or Kubernetes; \
                         `--cgroup PATH` takes any group, and `cat /proc/PID/cgroup` prints that of a process"
                    .to_owned(),
                false => format!("running: {}", listed(running.keys().collect())),
            };
            Err(Problem::refused(format!("no running container is called `{wanted}`")).hint(hint))
        }
        several => {
            Err(Problem::refused(format!("`{wanted}` is the name of {} running containers", several.len()))
                .hint(format!(
                    "give the identifier of one: {}",
                    listed(several.iter().map(|(id, _)| *id).collect())
                )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "1f2e3d4c5b6a79880123456789abcdef0123456789abcdef0123456789abcdef";
    const DB: &str = "aaaa3d4c5b6a79880123456789abcdef0123456789abcdef0123456789abcdef";
    const POD: &str = "bbbb3d4c5b6a79880123456789abcdef0123456789abcdef0123456789abcdef";
    const OLD: &str = "cccc3d4c5b6a79880123456789abcdef0123456789abcdef0123456789abcdef";

    fn groups() -> BTreeMap<String, PathBuf> {
        running(
            [
                format!("system.slice/docker-{WEB}.scope"),
                format!("docker/{DB}"),
                format!("kubepods.slice/kubepods-pod7.slice/cri-containerd-{POD}.scope"),
                format!("kubepods.slice/kubepods-pod7.slice/cri-containerd-{POD}.scope/inner"),
                format!("machine.slice/libpod-conmon-{OLD}.scope"),
                "system.slice/ssh.service".to_owned(),
            ]
            .iter()
            .map(PathBuf::from)
            .collect(),
        )
    }

    #[test]
    fn groups_of_engines_are_known_by_the_identifier_in_their_names() {
        let groups = groups();
        assert_eq!(groups.len(), 3, "{groups:?}");
        let none = BTreeMap::new();
        assert_eq!(
            found("1f2e", &groups, &none).unwrap(),
            PathBuf::from(format!("system.slice/docker-{WEB}.scope"))
        );
        assert!(found(POD, &groups, &none).unwrap().ends_with(format!("cri-containerd-{POD}.scope")));
        let problem = found("web", &groups, &none).unwrap_err();
        assert!(problem.hint.unwrap().contains("1f2e3d4c5b6a, aaaa3d4c5b6a"));
        let problem = found("web", &BTreeMap::new(), &none).unwrap_err();
        assert!(problem.hint.unwrap().contains("--cgroup PATH"));
    }

    #[test]
    fn names_are_those_in_the_files_of_the_engines() {
        let dir = tempfile::tempdir().unwrap();
        let docker = dir.path().join("docker");
        fs::create_dir_all(docker.join(WEB)).unwrap();
        fs::write(docker.join(WEB).join("config.v2.json"), r#"{"Name": "/web"}"#).unwrap();
        fs::create_dir_all(docker.join(OLD)).unwrap();
        fs::write(docker.join(OLD).join("config.v2.json"), "half a fi").unwrap();
        let podman = dir.path().join("containers.json");
        fs::write(&podman, format!(r#"[{{"id": "{DB}", "names": ["db", "web"]}}, {{"id": 7}}]"#)).unwrap();
        let kubernetes = dir.path().join("logs");
        fs::create_dir(&kubernetes).unwrap();
        fs::write(kubernetes.join(format!("etcd-node1_kube-system_etcd-{POD}.log")), "").unwrap();
        fs::write(kubernetes.join("something.log"), "").unwrap();
        let names = Places { docker, podman: vec![podman, dir.path().join("none")], kubernetes }.names();
        let groups = groups();
        for name in ["etcd", "etcd-node1", "kube-system/etcd-node1", "etcd-node1/etcd"] {
            assert!(found(name, &groups, &names).unwrap().to_string_lossy().contains(POD), "{name}");
        }
        assert!(found("db", &groups, &names).unwrap().ends_with(DB));
        let problem = found("web", &groups, &names).unwrap_err();
        assert!(problem.to_string().contains("2 running containers"), "{problem}");
        assert!(problem.hint.unwrap().contains("aaaa3d4c5b6a (db, web)"));
    }
}
