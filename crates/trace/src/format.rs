//! The known formats and the kind of their requests: one line per format in [`TABLE`].
//!
//! Each format is read in its own file; `detect` tells them apart.

use std::path::Path;

/// Address space of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of devices: an object is a device.
    Blocks,
    /// Bytes of files: an object is a file.
    Files,
    /// Keys: an object is a key, a request moves the whole of it.
    Keys,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Blocks, Kind::Files, Kind::Keys];

    /// The stable identifier, as in JSON and in our own CSV.
    pub fn id(self) -> &'static str {
        match self {
            Kind::Blocks => "blocks",
            Kind::Files => "files",
            Kind::Keys => "keys",
        }
    }

    /// For people.
    pub fn about(self) -> &'static str {
        match self {
            Kind::Blocks => "block addresses on devices",
            Kind::Files => "addresses in files",
            Kind::Keys => "object keys",
        }
    }

    /// The kind with this identifier.
    pub fn from_id(id: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Whether the requests were seen below a page cache: hits were filtered out and neighbours merged, so that feeding
    /// them to a buffer cache is silently wrong. `None`: unknown.
    pub fn below_page_cache(self) -> Option<bool> {
        match self {
            Kind::Blocks => Some(true),
            Kind::Files => Some(false),
            Kind::Keys => None,
        }
    }
}

/// A format of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text with named columns.
    Csv,
    /// oracleGeneral, 24 bytes a request.
    OracleGeneral,
    /// oracleGeneralOpNS, 27 bytes a request.
    OracleGeneralOpNs,
    /// libCacheSim's LCS, all three generations of its header.
    Lcs,
    /// twr, 20 bytes a request.
    Twr,
    /// twrNS, 22 bytes a request.
    TwrNs,
    /// VMware vscsi version 1.
    Vscsi1,
    /// VMware vscsi version 2.
    Vscsi2,
    /// MSR Cambridge (SNIA).
    Msr,
    /// Alibaba block traces of 2020.
    Alibaba,
    /// Tencent CBS.
    Tencent,
    /// Twitter cache traces of 2020.
    Twitter,
    /// SYSTOR '17 (Fujitsu VDI).
    Systor17,
    /// fio iolog version 2.
    FioIolog2,
    /// fio iolog version 3.
    FioIolog3,
    /// Output of `blktrace`.
    Blktrace,
    /// Output of `blkparse`.
    Blkparse,
    /// DiskSim ASCII.
    DiskSim,
    /// `strace -f -ttt -T`.
    Strace,
    /// FIU "nbw" system-call traces.
    Fiu,
    /// One id a line.
    Txt,
}

/// Facts about a format.
struct Row {
    format: Format,
    id: &'static str,
    kind: Kind,
    writable: bool,
    extension: Option<&'static str>,
    about: &'static str,
}

const fn row(
    format: Format,
    id: &'static str,
    kind: Kind,
    writable: bool,
    extension: Option<&'static str>,
    about: &'static str,
) -> Row {
    Row { format, id, kind, writable, extension, about }
}

const TABLE: [Row; 21] = {
    use Format::*;
    use Kind::{Blocks, Files, Keys};
    [
        row(
            Csv,
            "csv",
            Keys,
            true,
            Some("csv"),
            "named columns (a header, or --columns); written with all we know",
        ),
        row(
            OracleGeneral,
            "oracleGeneral",
            Keys,
            true,
            Some("oracleGeneral"),
            "libCacheSim: u32 time, u64 id, u32 size, i64 next use",
        ),
        row(
            OracleGeneralOpNs,
            "oracleGeneralOpNS",
            Keys,
            false,
            None,
            "libCacheSim: oracleGeneral with operation and name space",
        ),
        row(Lcs, "lcs", Keys, true, Some("lcs"), "libCacheSim: a header, then records; written as version 3"),
        row(
            Twr,
            "twr",
            Keys,
            false,
            None,
            "Twitter binary, 20 bytes: time, id, sizes of key and value, operation",
        ),
        row(TwrNs, "twrNS", Keys, false, None, "Twitter binary, 22 bytes: twr and a name space"),
        row(Vscsi1, "vscsi1", Blocks, false, None, "VMware vscsi version 1: SCSI commands of a virtual disk"),
        row(
            Vscsi2,
            "vscsi",
            Blocks,
            true,
            Some("vscsi"),
            "VMware vscsi version 2: SCSI commands with response times",
        ),
        row(Msr, "msr", Blocks, false, None, "MSR Cambridge (SNIA): CSV without header, Windows file times"),
        row(Alibaba, "alibaba", Blocks, false, None, "Alibaba 2020: device,opcode,offset,length,time_us"),
        row(Tencent, "tencent", Blocks, false, None, "Tencent CBS: time_s,offset,size (sectors),type,volume"),
        row(
            Twitter,
            "twitter",
            Keys,
            false,
            None,
            "Twitter 2020: time,key,key size,value size,client,op,ttl",
        ),
        row(
            Systor17,
            "systor17",
            Blocks,
            false,
            None,
            "SYSTOR '17: Timestamp,Response,IOType,LUN,Offset,Size",
        ),
        row(FioIolog2, "fio2", Files, true, None, "fio iolog version 2: no times but waits"),
        row(
            FioIolog3,
            "fio",
            Files,
            true,
            Some("iolog"),
            "fio iolog version 3 (write_iolog=): times in microseconds",
        ),
        row(Blktrace, "blktrace", Blocks, false, None, "what blktrace writes, binary"),
        row(Blkparse, "blkparse", Blocks, false, None, "what blkparse prints in its default format"),
        row(
            DiskSim,
            "disksim",
            Blocks,
            true,
            Some("disksim"),
            "DiskSim ASCII: time_ms device block blocks flags",
        ),
        row(Strace, "strace", Files, false, None, "strace -f -ttt -T: file descriptors are followed"),
        row(Fiu, "fiu", Files, false, None, "FIU nbw: system calls with HIT or MISS of the page cache"),
        row(Txt, "txt", Keys, true, Some("txt"), "one id a line: no times, no sizes"),
    ]
};

impl Format {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Format> {
        TABLE.iter().map(|row| row.format)
    }

    fn row(self) -> &'static Row {
        // Every format has its row: see the test.
        TABLE.iter().find(|row| row.format == self).unwrap_or(&TABLE[0])
    }

    /// The stable identifier, as in options and JSON.
    pub fn id(self) -> &'static str {
        self.row().id
    }

    /// Address space of its requests, unless the file itself says otherwise.
    pub fn kind(self) -> Kind {
        self.row().kind
    }

    /// Whether it can be written.
    pub fn writable(self) -> bool {
        self.row().writable
    }

    /// One line for people.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// File name extension of this format.
    pub fn extension(self) -> Option<&'static str> {
        self.row().extension
    }

    /// Whether it is made of lines.
    pub fn is_text(self) -> bool {
        use Format::*;
        !matches!(self, OracleGeneral | OracleGeneralOpNs | Lcs | Twr | TwrNs | Vscsi1 | Vscsi2 | Blktrace)
    }

    /// The format with this identifier, whatever its case.
    pub fn from_id(id: &str) -> Option<Format> {
        TABLE.iter().find(|row| row.id.eq_ignore_ascii_case(id)).map(|row| row.format)
    }

    /// The format of an output by its name: its extension, or `name.FORMAT.bin` as is usual for oracleGeneral.
    pub fn of_output(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_suffix(".bin").unwrap_or(name);
        let (_, extension) = name.rsplit_once('.')?;
        let wanted = |row: &&Row| {
            row.writable
                && (row.extension.is_some_and(|own| own.eq_ignore_ascii_case(extension))
                    || row.id.eq_ignore_ascii_case(extension))
        };
        TABLE.iter().find(wanted).map(|row| row.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_its_row_and_is_found_by_its_identifier() {
        for format in Format::all() {
            assert_eq!(format.row().format, format);
            assert_eq!(Format::from_id(format.id()), Some(format));
            assert_eq!(Format::from_id(&format.id().to_uppercase()), Some(format));
            assert!(format.writable() || format.extension().is_none());
        }
        assert_eq!(Format::from_id("zip"), None);
        assert_eq!(Kind::ALL.map(|kind| Kind::from_id(kind.id())), Kind::ALL.map(Some));
    }

    #[test]
    fn the_name_of_an_output_says_its_format() {
        for (name, format) in [
            ("a.csv", Some(Format::Csv)),
            ("dir.csv/a.oracleGeneral.bin", Some(Format::OracleGeneral)),
            ("a.oraclegeneral", Some(Format::OracleGeneral)),
            ("a.iolog", Some(Format::FioIolog3)),
            ("a.fio2", Some(Format::FioIolog2)),
            ("a.blktrace", None),
            ("a.bin", None),
            ("csv", None),
            ("-", None),
        ] {
            assert_eq!(Format::of_output(Path::new(name)), format, "{name}");
        }
    }
}
