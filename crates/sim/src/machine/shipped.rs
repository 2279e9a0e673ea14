//! What ships: machines of the published experiments and of today, and device models. Sources stand in the files.

/// A text that ships.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// The TOML.
    pub text: &'static str,
}

macro_rules! ship {
    ($folder:literal, $($name:literal),+ $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../", $folder, "/", $name, ".toml")) }),+]
    };
}

/// The machines.
pub fn shipped() -> &'static [Shipped] {
    ship!(
        "machines",
        "minix-1989",
        "minix-1989-readahead",
        "netbsd-1999",
        "freebsd-2006",
        "floppy-pool",
        "linux-1999-ide",
        "nvme",
        "four-ssd",
        "cloud-gp3",
    )
}

/// The device models, for `device.model`.
pub(super) fn models() -> &'static [Shipped] {
    ship!(
        "disks",
        "st32171w",
        "c2490a",
        "st34501n",
        "atlas3",
        "dnes-309170w",
        "rz26",
        "hp97560",
        "st225",
        "deskstar-14gxp",
        "deskstar-22gxp",
        "floppy-1200k",
        "nvme-tlc",
        "gp3",
    )
}

/// The device models, for a list of them.
pub fn device_models() -> &'static [Shipped] {
    models()
}
