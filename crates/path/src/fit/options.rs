//! What the fit needs to know and cannot see in the cells.

/// What the fit cannot see in the cells.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Block sizes that are predicted instead of fitted.
    pub held_out: Vec<u64>,
    /// Page size of the machine.
    pub page_bytes: u64,
    /// Name of the model.
    pub name: String,
    /// Cost of iowhy itself per request (the `null` method), subtracted from every cell before fitting; 0 to leave it in.
    pub harness_ns: f64,
    /// Requests the device serves at once, for the model; 1 when not known.
    pub device_parallelism: f64,
    /// Bytes of one read-ahead request, for the model.
    pub read_ahead_bytes: u64,
    /// The bytes live in memory: direct cells measure no device and are left out.
    pub memory_backed: bool,
    /// Bootstrap replicates.
    pub replicates: usize,
    /// Rounds of other cells that the model explains: the bootstrap draws them too.
    pub other_rounds: Vec<u32>,
}

impl FitOptions {
    /// Nothing held out, no harness cost, 128 KiB of read-ahead (the kernel's default), 400 replicates.
    pub fn new(name: impl Into<String>, page_bytes: u64, seed: u64) -> Self {
        FitOptions {
            seed,
            held_out: Vec::new(),
            page_bytes,
            name: name.into(),
            harness_ns: 0.0,
            device_parallelism: 1.0,
            read_ahead_bytes: 131_072,
            memory_backed: false,
            replicates: 400,
            other_rounds: Vec::new(),
        }
    }
}
