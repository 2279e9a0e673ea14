//! A key in the kernel's keyring (add_key(2), keyctl(2)), where programs of the same user find it.

use std::ffi::CString;
use std::io;

/// `KEY_SPEC_USER_SESSION_KEYRING`: searched by programs without a session keyring of their own.
const KEYRING: libc::c_long = -5;
/// `KEYCTL_UNLINK`.
const UNLINK: libc::c_long = 9;

/// A key.
pub(crate) struct Key {
    serial: libc::c_long,
}

impl Key {
    /// Adds a key of type `logon`, which programs cannot read; its bytes are given in two digits each.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn add(description: &str, hex: &str) -> Result<Key, String> {
        let bytes = bytes(hex).ok_or_else(|| format!("`{hex}` is no key in two digits a byte"))?;
        let description =
            CString::new(description).map_err(|_| "a description holds a zero byte".to_owned())?;
        // SAFETY: both texts end in a zero byte, the key is as long as is said, and the kernel only reads them.
        let serial = unsafe {
            libc::syscall(
                libc::SYS_add_key,
                c"logon".as_ptr(),
                description.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                KEYRING,
            )
        };
        if serial < 0 { Err(format!("add_key: {}", io::Error::last_os_error())) } else { Ok(Key { serial }) }
    }

    /// Takes it out again.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn remove(self) -> Result<(), String> {
        // SAFETY: numbers only.
        let done = unsafe { libc::syscall(libc::SYS_keyctl, UNLINK, self.serial, KEYRING) };
        if done < 0 { Err(format!("keyctl: {}", io::Error::last_os_error())) } else { Ok(()) }
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_in_two_digits_a_byte() {
        assert_eq!(bytes("00ff10"), Some(vec![0, 255, 16]));
        assert_eq!(bytes("0x"), None);
    }
}
