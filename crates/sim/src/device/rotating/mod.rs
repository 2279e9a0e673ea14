//! A rotating disk: the arm seeks by a + b * sqrt(d) + c * d, the platter turns at a constant speed and has a position at
//! every instant, tracks are skewed and zoned, a buffer keeps and reads on. Service time = command + seek + rotational wait +
//! transfer, as in DiskSim.
//!
//! Not modelled: spare sectors, recalibration, a settling time of writes.

mod buffer;
mod geometry;

use iowhy_core::problem::Problem;

use self::buffer::{Answer, Buffer};
pub use self::geometry::{Geometry, Place};
use super::{Command, Device};
use crate::ledger::Service;
use crate::machine::RotatingConfig;

/// A disk and where its arm is.
#[derive(Debug)]
pub struct Rotating {
    geometry: Geometry,
    turn_ns: u64,
    /// Seek times by distance.
    seeks_ns: Vec<u64>,
    seek: Seek,
    head_switch_ns: u64,
    command_ns: u64,
    hit_command_ns: u64,
    buffer: Buffer,
    /// Nanoseconds for a sector by zone: on tracks inside a cylinder, and on its last.
    sector_ns: Vec<[f64; 2]>,
    cylinder: u64,
    head: u64,
}

/// The seek curve, for distances beyond the table.
#[derive(Clone, Copy, Debug)]
struct Seek {
    a_ns: f64,
    b_ns: f64,
    c_ns: f64,
    track_ns: f64,
}

impl Seek {
    fn ns(&self, distance: u64) -> u64 {
        match distance {
            0 => 0,
            1 if self.track_ns > 0.0 => self.track_ns as u64,
            d => (self.a_ns + self.b_ns * (d as f64).sqrt() + self.c_ns * d as f64) as u64,
        }
    }
}

/// Distances whose seek times are kept in a table.
const TABLE: u64 = 1 << 16;

impl Rotating {
    /// Builds the disk.
    ///
    /// # Errors
    /// Names the key that makes it impossible.
    pub fn new(config: &RotatingConfig) -> Result<Rotating, Problem> {
        if !(1.0..=1e6).contains(&config.rpm) {
            return Err(Problem::refused(format!(
                "`device.rpm` is {}: a disk turns 1 to 1000000 times a minute",
                config.rpm
            ))
            .hint("7200 is usual"));
        }
        let times = [
            config.seek_a_ms,
            config.seek_b_ms,
            config.seek_c_ms,
            config.seek_track_ms,
            config.head_switch_ms,
            config.command_ms,
            config.hit_command_ms,
        ];
        if times.iter().any(|ms| *ms > 1e6) {
            return Err(Problem::refused(
                "a time of the rotating disk (`device.seek_...`, `device.command_ms`) is more than 1000 s",
            )
            .hint("they are milliseconds: 9.3 is a usual seek"));
        }
        let geometry = Geometry::new(config)?;
        let ns = |ms: f64| (ms * 1e6) as u64;
        let seek = Seek {
            a_ns: config.seek_a_ms * 1e6,
            b_ns: config.seek_b_ms * 1e6,
            c_ns: config.seek_c_ms * 1e6,
            track_ns: config.seek_track_ms * 1e6,
        };
        let turn_ns = (60e9 / config.rpm) as u64;
        let sector_ns = (0..geometry.zones())
            .map(|zone| {
                [false, true].map(|last| sector_ns(&geometry, turn_ns, &geometry.on_zone(zone, last)))
            })
            .collect();
        Ok(Rotating {
            turn_ns,
            seeks_ns: (0..geometry.cylinders().min(TABLE)).map(|d| seek.ns(d)).collect(),
            seek,
            head_switch_ns: ns(config.head_switch_ms),
            command_ns: ns(config.command_ms),
            hit_command_ns: ns(config.hit_command_ms),
            buffer: Buffer::new(config.buffer_segments, config.buffer_sectors, config.buffer_read_ahead),
            sector_ns,
            cylinder: 0,
            head: 0,
            geometry,
        })
    }

    /// Where sectors lie.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Seek time over a number of cylinders.
    pub fn seek_ns(&self, distance: u64) -> u64 {
        self.seeks_ns.get(distance as usize).copied().unwrap_or_else(|| self.seek.ns(distance))
    }

    /// From one arm position to another: a seek or a head switch.
    fn move_ns(&self, from: (u64, u64), to: (u64, u64)) -> u64 {
        let distance = from.0.abs_diff(to.0);
        match distance {
            0 if from.1 != to.1 => self.head_switch_ns,
            _ => self.seek_ns(distance),
        }
    }

    /// Time until a slot comes under the head.
    fn rotation_ns(&self, now_ns: u64, slot: u64, of: u64) -> u64 {
        let there = slot * self.turn_ns / of;
        let here = now_ns % self.turn_ns;
        if there >= here { there - here } else { there + self.turn_ns - here }
    }

    /// The arm, which may have moved while the drive read on.
    fn arm(&self, now_ns: u64) -> (u64, u64) {
        match self.buffer.head_at(now_ns) {
            Some(sector) => {
                let place = self.geometry.place(sector);
                (place.cylinder, place.head)
            }
            None => (self.cylinder, self.head),
        }
    }

    /// Nanoseconds that a sector takes when tracks are read one behind the other.
    fn sector_ns(&self, place: &Place) -> f64 {
        let (zone, last) = self.geometry.zone_of(place);
        self.sector_ns[zone][usize::from(last)]
    }

    /// Moves the arm and the bytes of a command, from `at`.
    fn mechanics(&mut self, at_ns: u64, command: &Command, service: &mut Service) -> u64 {
        let mut now = at_ns;
        let (mut sector, mut left) = (command.sector, command.sectors);
        let mut arm = self.arm(at_ns);
        let end = self.geometry.sectors();
        while left > 0 && sector < end {
            let place = self.geometry.place(sector);
            let here = left.min(place.of - place.sector);
            let seek = self.move_ns(arm, (place.cylinder, place.head));
            let rotation = self.rotation_ns(now + seek, place.slot, place.of);
            let transfer = self.geometry.slots(&place, here) * self.turn_ns / place.of;
            service.seek_ns += seek;
            service.rotation_ns += rotation;
            service.transfer_ns += transfer;
            now += seek + rotation + transfer;
            arm = (place.cylinder, place.head);
            sector += here;
            left -= here;
        }
        (self.cylinder, self.head) = arm;
        now
    }
}

/// Nanoseconds that a sector takes when tracks are read one behind the other, on a track like this one.
fn sector_ns(geometry: &Geometry, turn_ns: u64, place: &Place) -> f64 {
    let slots = geometry.track_slots(place) + geometry.skew_behind(place);
    turn_ns as f64 * slots as f64 / place.of as f64 / place.of as f64
}

impl Device for Rotating {
    fn sectors(&self) -> u64 {
        self.geometry.sectors()
    }

    fn units(&self) -> u64 {
        1
    }

    fn serve(&mut self, now_ns: u64, command: &Command) -> Service {
        let mut service = Service::default();
        let end = command.sector.saturating_add(command.sectors);
        if !command.write {
            // The command is understood first; reading on goes on meanwhile.
            let at = now_ns + self.hit_command_ns;
            match self.buffer.ask(at, command.sector, end) {
                Answer::Hit => {
                    service.command_ns = self.hit_command_ns;
                    return service;
                }
                Answer::Soon(ns) => {
                    service.command_ns = self.hit_command_ns;
                    service.transfer_ns = ns;
                    let place = self.geometry.place(end.saturating_sub(1));
                    let sector_ns = self.sector_ns(&place);
                    self.buffer.fill(at + ns, command.sector, end, self.geometry.sectors(), sector_ns);
                    return service;
                }
                Answer::Miss => {}
            }
        }
        service.command_ns = self.command_ns;
        let at = now_ns + self.command_ns;
        let done = self.mechanics(at, command, &mut service);
        if command.write {
            self.buffer.forget(at, command.sector, end);
        } else {
            self.buffer.stop(at);
            let place = self.geometry.place(end.saturating_sub(1));
            let sector_ns = self.sector_ns(&place);
            self.buffer.fill(done, command.sector, end, self.geometry.sectors(), sector_ns);
        }
        service
    }

    fn positioning_ns(&self, now_ns: u64, command: &Command) -> u64 {
        let place = self.geometry.place(command.sector);
        let at = now_ns + self.command_ns;
        let seek = self.move_ns(self.arm(at), (place.cylinder, place.head));
        seek + self.rotation_ns(at + seek, place.slot, place.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn disk(model: &str) -> Rotating {
        let mut machine = Machine::default();
        machine.set("device.model", &crate::machine::Value::Text(model.to_owned())).unwrap();
        Rotating::new(&machine.device.rotating).unwrap()
    }

    fn read(sector: u64, sectors: u64) -> Command {
        Command { sector, sectors, write: false }
    }

    #[test]
    fn the_st32171w_has_the_size_and_the_seeks_of_its_data() {
        let disk = disk("st32171w");
        // 4,110,000 blocks are sold; the geometry holds the spares beside.
        let sectors = disk.geometry().sectors();
        assert!((4_110_000..4_330_000).contains(&sectors), "{sectors}");
        assert_eq!(disk.seek_ns(1), 1_940_000);
        let full = disk.seek_ns(5171) as f64 / 1e6;
        assert!((16.0..17.4).contains(&full), "{full}");
        // The mean over uniform places: published 9.33 ms, the fit's rms is 0.32 ms.
        let n = 5172u64;
        let pairs: u64 = (1..n).map(|d| 2 * (n - d)).sum::<u64>();
        let sum: f64 = (1..n).map(|d| 2.0 * (n - d) as f64 * disk.seek_ns(d) as f64).sum();
        let mean = sum / pairs as f64 / 1e6;
        assert!((mean - 9.33).abs() < 0.64, "{mean}");
    }

    #[test]
    fn a_track_takes_one_turn_and_skew_hides_the_switch() {
        let mut disk = disk("st32171w");
        let service = disk.serve(0, &read(0, 186 * 5));
        let turns = (service.total_ns() - service.command_ns) as f64 / disk.turn_ns as f64;
        // Five tracks of a turn each, four skews of 37 sectors, and less than a turn to begin.
        let least = 5.0 + 4.0 * 37.0 / 186.0;
        assert!((least - 0.01..least + 1.0).contains(&turns), "{turns}");
    }

    #[test]
    fn media_rates_are_the_published_ones() {
        // 17 sectors, 3600 turns: 522 KB/s at 1:1, 261 at 1:2, 174 at 1:3.
        for (interleave, kb) in [(1, 522.0), (2, 261.0), (3, 174.0)] {
            let mut machine = Machine::default();
            machine.set("device.model", &crate::machine::Value::Text("st225".to_owned())).unwrap();
            machine.device.rotating.sector_interleave = interleave;
            let mut disk = Rotating::new(&machine.device.rotating).unwrap();
            let service = disk.serve(0, &read(0, 17));
            let rate = 17.0 * 512.0 / (service.transfer_ns as f64 / 1e9) / 1000.0;
            assert!((rate / kb - 1.0).abs() < 0.04 * interleave as f64, "{interleave}: {rate}");
        }
    }

    #[test]
    fn without_a_buffer_a_sector_that_comes_late_costs_a_turn() {
        let mut disk = disk("st225");
        let first = disk.serve(0, &read(0, 1));
        // The next command comes when the next sector (one place further on, 1:2) has just passed.
        let late = first.total_ns() + disk.turn_ns / 17 + 1000;
        let second = disk.serve(late, &read(1, 1));
        assert!(second.rotation_ns > disk.turn_ns * 9 / 10, "{second:?}");
        let mut again = self::disk("st225");
        let first = again.serve(0, &read(0, 1));
        let in_time = again.serve(first.total_ns(), &read(1, 1));
        assert!(in_time.rotation_ns < disk.turn_ns / 10, "{in_time:?}");
    }

    #[test]
    fn the_track_buffer_answers_what_it_read_on() {
        let mut disk = disk("st32171w");
        let first = disk.serve(0, &read(1000, 16));
        let later = first.total_ns() + 8_000_000;
        let second = disk.serve(later, &read(1016, 16));
        assert_eq!((second.seek_ns, second.rotation_ns, second.transfer_ns), (0, 0, 0));
        assert_eq!(
            disk.serve(later + 1_000_000, &Command { write: true, ..read(1016, 1) }).command_ns,
            590_000
        );
        assert!(disk.serve(later + 9_000_000, &read(1016, 16)).transfer_ns > 0, "a write makes it forget");
    }

    #[test]
    fn beyond_the_end_nothing_moves_and_nothing_breaks() {
        let mut disk = disk("st225");
        let service = disk.serve(0, &read(u64::MAX, u64::MAX));
        assert_eq!(service.transfer_ns, 0);
    }
}
