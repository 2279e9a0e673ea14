//! Reports in a real browser: they open without a complaint, charts have their marks, the keyboard works, nothing runs out
//! of the page, light and dark differ. Debian's packages chromium and chromium-driver are used where they are installed; the
//! driver is spoken to in its own protocol (W3C WebDriver), which is JSON over HTTP.
//!
//! Records are of false devices and simulations, so that every page has the same contents; pictures of them are kept under
//! target/report-pages, to be looked at.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::steps::Ending;

/// A page may be of this size at most.
const MAX_BYTES: u64 = 1 << 20;

/// Makes the pages and looks at each.
pub(crate) fn check(root: &Path) -> Ending {
    let mut driver = match Driver::start() {
        Ok(driver) => driver,
        Err(why) => {
            return Ending::Skipped(format!("{why}; Debian's packages chromium and chromium-driver have it"));
        }
    };
    let result = pages(root).and_then(|pages| {
        driver.open()?;
        let mut complaints = Vec::new();
        for page in &pages {
            let name = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            match look(&driver, page, &name) {
                Ok(seen) => println!("   {name}: {seen}"),
                Err(why) => complaints.push(format!("{name}: {why}")),
            }
        }
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
    });
    driver.end();
    match result {
        Ok(()) => Ending::Passed,
        Err(why) => Ending::Failed(why),
    }
}

/// The pages, made by the binary of the build.
fn pages(root: &Path) -> Result<Vec<PathBuf>, String> {
    let target = crate::target(root);
    let built = Command::new("cargo")
        .args(["build", "--quiet", "-p", "iowhy"])
        .current_dir(root)
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !built.success() {
        return Err("iowhy does not build".to_owned());
    }
    let folder = target.join("report-pages");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let iowhy = |args: &[&str]| -> Result<(), String> {
        let ran = crate::iowhy(target.join("debug/iowhy"))
            .args(args)
            .arg("--quiet")
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot run iowhy: {error}"))?;
        // 1: measured, but a cell is mislabelled, as happens on a busy machine.
        match ran.status.code() {
            Some(0 | 1) => Ok(()),
            _ => Err(format!("iowhy {}: {}", args.join(" "), String::from_utf8_lossy(&ran.stderr))),
        }
    };
    iowhy(&["--json", "path.json", "--time", "3s", "scripted"])?;
    let sweep = ["--rw", "randread", "--bs", "512..64k", "--state", "warm,direct", "--layers"];
    iowhy(&[&["bench", "scripted", "--json", "bench.json"][..], &sweep].concat())?;
    iowhy(&["compare", "bench.json", "bench.json", "--json", "compare.json"])?;
    iowhy(&["--json", "watch.json", "--", "sh", "-c", "find / -xdev -maxdepth 3 >/dev/null 2>&1; true"])?;
    let load = ["--machine", "netbsd-1999", "--workload", "news-1999"];
    iowhy(&[&["sim", "--sweep", "volume.interleave=64..4096", "--json", "sim.json"][..], &load].concat())?;
    let names = ["path", "bench", "compare", "watch", "sim"];
    let mut made = Vec::new();
    for name in names {
        iowhy(&["report", &format!("{name}.json"), "-o", &format!("{name}.html")])?;
        made.push(folder.join(format!("{name}.html")));
    }
    let all: Vec<String> = names.iter().map(|name| format!("{name}.json")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    iowhy(&[&["report", "-o", "several.html"][..], &all].concat())?;
    made.push(folder.join("several.html"));
    Ok(made)
}

/// What is counted on a page.
const COUNT: &str = "
const charts = [...document.querySelectorAll('svg.chart')];
return {
  charts: charts.length,
  without_marks: charts.filter(c => !c.querySelector('.m')).map(c => c.getAttribute('aria-label')),
  without_words: charts.filter(c => !c.getAttribute('aria-label')).length,
  without_table: [...document.querySelectorAll('figure')].filter(f => !f.querySelector('details table tbody tr')).length,
  bad_numbers: (document.body.innerHTML.match(/NaN|Infinity|undefined/g) || []).length,
  title: document.title, wide: document.documentElement.scrollWidth, room: innerWidth,
  cut: charts.flatMap(c => [...c.querySelectorAll('text')].filter(t => {
    const b = t.getBoundingClientRect(), o = c.getBoundingClientRect();
    return !t.closest('.flame') && (b.left < o.left - 2 || b.right > o.right + 2);
  }).map(t => t.textContent)),
};";

/// What is shown as tip, or nothing.
const TIP: &str = "const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent;";

fn look(driver: &Driver, page: &Path, name: &str) -> Result<String, String> {
    let bytes = std::fs::metadata(page).map_err(|error| error.to_string())?.len();
    if bytes > MAX_BYTES {
        return Err(format!("{bytes} bytes, more than {MAX_BYTES}"));
    }
    let mut charts = 0;
    for (width, scheme) in [(1200, "light"), (390, "dark")] {
        driver.post("/window/rect", &json!({"width": width, "height": 900}))?;
        driver.cdp(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        )?;
        driver.post("/url", &json!({"url": format!("file://{}", page.display())}))?;
        let seen = driver.script(COUNT)?;
        let nothing = |key: &str| seen[key] == json!(0) || seen[key] == json!([]);
        for key in ["without_marks", "without_words", "without_table", "bad_numbers", "cut"] {
            if !nothing(key) {
                return Err(format!("{width} wide: {key}: {}", seen[key]));
            }
        }
        if seen["wide"].as_f64() > seen["room"].as_f64() {
            return Err(format!("{width} wide: {} runs out of {}", seen["wide"], seen["room"]));
        }
        charts = seen["charts"].as_u64().unwrap_or(0);
        if charts == 0 || seen["title"] == "" {
            return Err(format!("{width} wide: no chart or no title: {seen}"));
        }
        driver.picture(&page.with_file_name(format!("{name}-{scheme}.png")))?;
    }
    let dark = driver.script("return getComputedStyle(document.body).backgroundColor;")?;
    driver.cdp(
        "Emulation.setEmulatedMedia",
        &json!({"features": [{"name": "prefers-color-scheme", "value": "light"}]}),
    )?;
    if driver.script("return getComputedStyle(document.body).backgroundColor;")? == dark {
        return Err("light and dark look the same".to_owned());
    }
    keyboard(driver)?;
    let complaints = driver.post("/se/log", &json!({"type": "browser"}))?;
    match complaints.as_array() {
        Some(none) if none.is_empty() => Ok(format!("{bytes} bytes, {charts} charts")),
        _ => Err(format!("the browser complains: {complaints}")),
    }
}

/// Tab to a chart, arrows along its marks, Escape; in a flame graph Enter widens.
fn keyboard(driver: &Driver) -> Result<(), String> {
    const TAB: &str = "\u{e004}";
    const RIGHT: &str = "\u{e014}";
    const ESCAPE: &str = "\u{e00c}";
    const ENTER: &str = "\u{e007}";
    let focused = "return document.activeElement.matches('svg.chart');";
    let mut steps = 0;
    while driver.script(focused)? != json!(true) {
        steps += 1;
        if steps > 40 {
            return Err("no chart can be reached with Tab".to_owned());
        }
        driver.key(TAB)?;
    }
    driver.key(RIGHT)?;
    let first = driver.script(TIP)?;
    driver.key(RIGHT)?;
    let second = driver.script(TIP)?;
    if first == "" || second == "" {
        return Err("the arrow shows no figures".to_owned());
    }
    driver.key(ESCAPE)?;
    if driver.script(TIP)? != "" {
        return Err("Escape leaves the figures there".to_owned());
    }
    let flame = "const f = document.querySelector('svg.flame'); if (f) f.focus(); return !!f;";
    if driver.script(flame)? == json!(true) {
        for key in [RIGHT, RIGHT, ENTER] {
            driver.key(key)?;
        }
        let zoomed = "return document.querySelector('svg.flame').dataset.zoomed;";
        if driver.script(zoomed)? != "1" {
            return Err("Enter does not widen a frame".to_owned());
        }
        driver.key(ESCAPE)?;
        if driver.script(zoomed)? == "1" {
            return Err("Escape does not go back".to_owned());
        }
    }
    Ok(())
}

/// The browser's driver and one session of it.
struct Driver {
    child: Child,
    port: u16,
    session: String,
}

impl Driver {
    fn start() -> Result<Driver, String> {
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|_| "no chromedriver is installed".to_owned())?;
        // It says: ChromeDriver was started successfully on port 40123.
        let port = child.stdout.take().and_then(|out| {
            let told = BufReader::new(out).lines().map_while(Result::ok);
            let after = told.filter_map(|line| Some(line.split_once("on port ")?.1.to_owned()));
            let numbers = after.map(|rest| rest.trim_end_matches('.').to_owned());
            numbers.filter_map(|number| number.parse::<u16>().ok()).find(|port| *port != 0)
        });
        match port {
            Some(port) => Ok(Driver { child, port, session: String::new() }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                Err("chromedriver does not start".to_owned())
            }
        }
    }

    /// Opens a browser without a window.
    fn open(&mut self) -> Result<(), String> {
        // Root may not use the browser's own sandbox; the pages are ours.
        let arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let wishes = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let answer = self.request("POST", "/session", Some(&wishes))?;
        self.session =
            answer["sessionId"].as_str().ok_or_else(|| format!("no browser: {answer}"))?.to_owned();
        Ok(())
    }

    fn end(mut self) {
        if !self.session.is_empty() {
            let _ = self.request("DELETE", &format!("/session/{}", self.session), None);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.request("POST", &format!("/session/{}{path}", self.session), Some(body))
    }

    fn cdp(&self, command: &str, parameters: &Value) -> Result<Value, String> {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    fn script(&self, script: &str) -> Result<Value, String> {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    fn key(&self, key: &str) -> Result<Value, String> {
        let presses = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": presses}]}))
    }

    fn picture(&self, path: &Path) -> Result<(), String> {
        let shot = self.cdp("Page.captureScreenshot", &json!({"captureBeyondViewport": true}))?;
        let data = decode(shot["data"].as_str().unwrap_or_default());
        std::fs::write(path, data).map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// One request, one connection.
    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let failed = |error: std::io::Error| format!("the browser's driver: {error}");
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(failed)?;
        stream.set_read_timeout(Some(Duration::from_secs(120))).map_err(failed)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .map_err(failed)?;
        let mut reader = BufReader::new(stream);
        let mut length = None;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).map_err(failed)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let mut answer = vec![0; length.ok_or("an answer without a length")?];
        reader.read_exact(&mut answer).map_err(failed)?;
        let mut answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        let value = answer["value"].take();
        match value.get("error") {
            Some(error) => Err(format!("{path}: {error}: {}", value["message"])),
            None => Ok(value),
        }
    }
}

/// Base64 as of RFC 4648; what does not belong to it is passed over.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for c in text.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_standard() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")]
        {
            assert_eq!(decode(text), bytes.as_bytes());
        }
    }
}
