//! The page of a volume: 4096 bytes, header and check over the rest.

pub const PAGE: usize = 4096;
pub const HEAD: usize = 24;

pub struct Header {
    pub check: u32,
    pub number: u32,
    pub kind: u16,
    pub rows: u16,
    pub free: u16,
    pub change: u64,
}

fn u16_at(p: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([p[at], p[at + 1]])
}

fn u32_at(p: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([p[at], p[at + 1], p[at + 2], p[at + 3]])
}

impl Header {
    pub fn read(p: &[u8]) -> Header {
        Header {
            check: u32_at(p, 0),
            number: u32_at(p, 4),
            kind: u16_at(p, 8),
            rows: u16_at(p, 10),
            free: u16_at(p, 12),
            change: u64::from(u32_at(p, 16)) | u64::from(u32_at(p, 20)) << 32,
        }
    }

    pub fn write(&self, p: &mut [u8]) {
        p[0..4].copy_from_slice(&self.check.to_le_bytes());
        p[4..8].copy_from_slice(&self.number.to_le_bytes());
        p[8..10].copy_from_slice(&self.kind.to_le_bytes());
        p[10..12].copy_from_slice(&self.rows.to_le_bytes());
        p[12..14].copy_from_slice(&self.free.to_le_bytes());
        p[14..16].fill(0);
        p[16..24].copy_from_slice(&self.change.to_le_bytes());
    }
}

pub struct Crc {
    table: [u32; 256],
}

impl Crc {
    pub fn new() -> Crc {
        let mut table = [0u32; 256];
        for (i, t) in table.iter_mut().enumerate() {
            let mut c = i as u32;
            for _ in 0..8 {
                c = if c & 1 == 1 { 0x82f6_3b78 ^ (c >> 1) } else { c >> 1 };
            }
            *t = c;
        }
        Crc { table }
    }

    /// Over everything but the check itself.
    pub fn of_page(&self, p: &[u8]) -> u32 {
        let mut c = !0u32;
        for &b in &p[4..] {
            c = self.table[((c ^ u32::from(b)) & 0xff) as usize] ^ (c >> 8);
        }
        !c
    }
}
