//! A party's long-term key, and the fingerprints by which the others know it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::alg_id::ED25519;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::NetError;

/// Most bytes of a key file.
const MAX_KEY_FILE: u64 = 64 * 1024;

/// The object identifier of the extension for certificate authorities, and its value in DER for "no authority".
const BASIC_CONSTRAINTS: [u64; 4] = [2, 5, 29, 19];
const CA_FALSE: [u8; 2] = [0x30, 0];

/// A party's Ed25519 key and its self-signed certificate.
///
/// Cloning shares the key, it does not copy it. The PEM text of the key is wiped when the last clone is dropped;
/// the TLS library keeps its own parsed copy, which is not.
#[derive(Clone)]
pub struct Identity {
    inner: Arc<Inner>,
}

struct Inner {
    key_pem: Zeroizing<String>,
    certificate_pem: String,
    fingerprint: [u8; 32],
    certified: Arc<CertifiedKey>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint())
    }
}

impl Identity {
    /// Makes a new key and certificate from the system's randomness. `name` goes into the certificate; it is for humans
    /// and proves nothing.
    ///
    /// # Errors
    /// [`NetError::Config`] if the key cannot be made.
    pub fn generate(name: &str) -> Result<Self, NetError> {
        let failed = |error: rcgen::Error| NetError::Config {
            detail: format!("cannot make a key: {error}"),
        };
        let mut key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(failed)?;
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        // No authority: trust in this certificate does not extend to others that its key signed.
        let mut constraints =
            rcgen::CustomExtension::from_oid_content(&BASIC_CONSTRAINTS, CA_FALSE.to_vec());
        constraints.set_criticality(true);
        params.custom_extensions = vec![constraints];
        let certificate = params.self_signed(&key).map_err(failed)?;
        let key_pem = Zeroizing::new(key.serialize_pem());
        key.zeroize();
        Self::from_parts(key_pem, certificate.pem()).map_err(|detail| NetError::Config {
            detail: format!("cannot use a new key: {detail}"),
        })
    }

    fn from_parts(key_pem: Zeroizing<String>, certificate_pem: String) -> Result<Self, String> {
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes())
            .map_err(|_| "its certificate is cut or not readable".to_owned())?;
        let mut key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes())
            // The error is not shown: it might quote the text.
            .map_err(|_| "it holds no readable private key".to_owned())?;
        let signing = any_supported_type(&key)
            .map_err(|_| "its private key is of an unsupported kind".to_owned());
        key.zeroize();
        let fingerprint = sha256(&certificate);
        let certified = CertifiedKey::new(vec![certificate.into_owned()], signing?);
        certified
            .keys_match()
            .map_err(|_| "its certificate does not belong to its private key".to_owned())?;
        Ok(Self {
            inner: Arc::new(Inner {
                key_pem,
                certificate_pem,
                fingerprint,
                certified: Arc::new(certified),
            }),
        })
    }

    /// Writes key and certificate as PEM to a new file of mode 0600.
    ///
    /// # Errors
    /// [`NetError::KeyFile`] if the file exists (a key is never overwritten) or cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), NetError> {
        let failed = |error: std::io::Error| NetError::KeyFile {
            path: path.to_owned(),
            detail: format!("cannot be written ({error}): make room there, or name another place"),
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = options.open(path).map_err(failed)?;
        let written = file
            .write_all(self.inner.key_pem.as_bytes())
            .and_then(|()| file.write_all(self.inner.certificate_pem.as_bytes()))
            .and_then(|()| file.sync_all());
        written.map_err(|error| {
            // Half a key is of no use; that it cannot be removed would add nothing to the error.
            let _ = std::fs::remove_file(path);
            failed(error)
        })
    }

    /// Reads a file written by [`Identity::save`].
    ///
    /// # Errors
    /// [`NetError::KeyFileMode`] if group or others can read it; [`NetError::KeyFile`] if it cannot be read or holds no
    /// key with its certificate.
    pub fn load(path: &Path) -> Result<Self, NetError> {
        let bad = |detail: String| NetError::KeyFile {
            path: path.to_owned(),
            detail: format!("{detail}; make a new key for this party if it is lost"),
        };
        let cannot_read = |error: std::io::Error| bad(format!("cannot be read: {error}"));
        let file = File::open(path).map_err(cannot_read)?;
        let metadata = file.metadata().map_err(cannot_read)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = metadata.permissions().mode() & 0o7777;
            if mode & 0o077 != 0 {
                return Err(NetError::KeyFileMode {
                    path: path.to_owned(),
                    mode,
                });
            }
        }
        if metadata.len() > MAX_KEY_FILE {
            return Err(bad(format!(
                "{} bytes are too many for a key",
                metadata.len()
            )));
        }
        let len = usize::try_from(metadata.len())
            .map_err(|_| NetError::internal("a key file that passed the limit on key files"))?;
        // With capacity for the whole file: a text that grows would leave a copy of the key in freed memory.
        let mut text = Zeroizing::new(String::with_capacity(len + 1));
        file.take(MAX_KEY_FILE)
            .read_to_string(&mut text)
            .map_err(cannot_read)?;
        Self::parse(&text).map_err(bad)
    }

    /// The content of a key file, or what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let split = text
            .find("-----BEGIN CERTIFICATE-----")
            .ok_or("it holds no certificate")?;
        let (key, certificate) = text.split_at(split);
        Self::from_parts(Zeroizing::new(key.to_owned()), certificate.to_owned())
    }

    /// SHA-256 of the certificate's DER, 64 hex digits: what the others list for us.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint_hex(&self.inner.fingerprint)
    }

    /// SHA-256 of the certificate's DER.
    #[must_use]
    pub fn fingerprint_bytes(&self) -> [u8; 32] {
        self.inner.fingerprint
    }

    /// The Ed25519 signature of `message`, 64 bytes. The key signs handshakes of TLS as well: a message must not begin as those do, with 64 spaces.
    ///
    /// # Errors
    /// [`NetError::Config`] if the key is of another kind.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, NetError> {
        let other = || NetError::Config {
            detail: "the key of this identity makes no Ed25519 signatures".to_owned(),
        };
        let schemes = [SignatureScheme::ED25519];
        let signer = self.inner.certified.key.choose_scheme(&schemes);
        signer.ok_or_else(other)?.sign(message).map_err(|_| other())
    }

    pub(crate) fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.inner.certified)
    }
}

/// Whether `signature` is that of `message` under an Ed25519 key of 32 bytes.
#[must_use]
pub fn verify_ed25519(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    rustls::crypto::aws_lc_rs::default_provider()
        .signature_verification_algorithms
        .all
        .iter()
        .find(|algorithm| algorithm.signature_alg_id() == ED25519)
        .is_some_and(|algorithm| {
            algorithm
                .verify_signature(public_key, message, signature)
                .is_ok()
        })
}

/// SHA-256 of a certificate.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// A fingerprint as 64 lower-case hex digits.
#[must_use]
pub fn fingerprint_hex(fingerprint: &[u8; 32]) -> String {
    fingerprint
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Reads a fingerprint of 64 hex digits; upper case, and colons between bytes, are taken as well.
///
/// # Errors
/// [`NetError::Config`] that quotes the text.
pub fn parse_fingerprint(text: &str) -> Result<[u8; 32], NetError> {
    let bad = || NetError::Config {
        detail: format!(
            "{:?} is no certificate fingerprint: write the 64 hex digits that the party's `init` printed",
            crate::error::one_line(text, 100)
        ),
    };
    let digits: Vec<u8> = text
        .trim()
        .chars()
        .filter(|c| *c != ':')
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()
        .ok_or_else(bad)?;
    let mut out = [0; 32];
    if digits.len() != 2 * out.len() {
        return Err(bad());
    }
    for (out, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *out = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
    }
    Ok(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("kq-identity-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_saved_identity_is_the_same_when_loaded() {
        let folder = Folder::new("round-trip");
        let path = folder.0.join("party.pem");
        let identity = Identity::generate("party 0").unwrap();
        identity.save(&path).unwrap();
        let loaded = Identity::load(&path).unwrap();
        assert_eq!(loaded.fingerprint(), identity.fingerprint());
        assert_eq!(
            parse_fingerprint(&identity.fingerprint()).unwrap(),
            identity.fingerprint_bytes()
        );
        assert!(matches!(
            identity.save(&path),
            Err(NetError::KeyFile { .. })
        ));
    }

    /// A key file that another TLS library wrote (ring), as parties had it before. The key serves this test alone.
    const WRITTEN_BEFORE: &str = "\
-----BEGIN PRIVATE KEY-----
MFECAQEwBQYDK2VwBCIEIPOfnKSzclqBYOKyD3egEmZ/womqI/HaqAx8UJH0crgW
gSEAStt+jFLFYut5CpxKG7sYGdufyDx8sx9LqSAk8C7HSuU=
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIH3MIGqoAMCAQICFBIN49yDfMivcTMwzlKsK2Xl+30OMAUGAytlcDASMRAwDgYD
VQQDDAdwYXJ0eSAwMCAXDTc1MDEwMTAwMDAwMFoYDzQwOTYwMTAxMDAwMDAwWjAS
MRAwDgYDVQQDDAdwYXJ0eSAwMCowBQYDK2VwAyEAStt+jFLFYut5CpxKG7sYGduf
yDx8sx9LqSAk8C7HSuWjEDAOMAwGA1UdEwEB/wQCMAAwBQYDK2VwA0EAprtIOKYv
/MR/JMKVkH2uSZUxdC0JI8gzZGpFvryV3aB4TvtCBvNu7GdSc8ai6TMm1l0u9ONE
OhjfUORZPVsBBw==
-----END CERTIFICATE-----
";

    #[test]
    fn key_files_written_before_are_read() {
        let identity = Identity::parse(WRITTEN_BEFORE).unwrap();
        assert_eq!(
            identity.fingerprint(),
            "37a17bb05e82ccf97346f776dd1ae25ce9056958afdb0f20d31f970e3bcb2f2e"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("mode");
        let path = folder.0.join("party.pem");
        Identity::generate("party 0").unwrap().save(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Identity::load(&path).unwrap_err();
        assert!(matches!(error, NetError::KeyFileMode { mode: 0o640, .. }));
        assert!(error.to_string().contains("chmod 600"));
    }

    #[test]
    fn broken_key_files_are_refused_without_quoting_them() {
        let folder = Folder::new("broken");
        let identity = Identity::generate("party 0").unwrap();
        let other = Identity::generate("party 0").unwrap();
        let texts = [
            String::new(),
            identity.inner.key_pem.to_string(),
            identity.inner.certificate_pem.clone(),
            format!(
                "{}{}",
                identity.inner.key_pem.as_str(),
                other.inner.certificate_pem
            ),
            format!(
                "{}{}",
                identity.inner.key_pem.replace('M', "N"),
                identity.inner.certificate_pem
            ),
            // Cut in the middle of the certificate.
            identity.inner.key_pem.to_string() + identity.inner.certificate_pem.split_at(200).0,
        ];
        for (index, text) in texts.iter().enumerate() {
            let path = folder.0.join(format!("{index}.pem"));
            fs::write(&path, text).unwrap();
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            }
            let error = Identity::load(&path).unwrap_err();
            assert!(
                matches!(error, NetError::KeyFile { .. }),
                "{index}: {error}"
            );
            let text = error.to_string();
            assert!(!text.contains("BEGIN") && !text.contains('{'), "{text}");
            assert!(text.ends_with("make a new key for this party if it is lost"));
        }
        let nowhere = folder.0.join("none").join("party.pem");
        let error = identity.save(&nowhere).unwrap_err().to_string();
        assert!(error.ends_with("name another place"), "{error}");
        assert!(matches!(
            Identity::load(&folder.0.join("none")),
            Err(NetError::KeyFile { .. })
        ));
    }

    /// The first test vector of RFC 8032.
    #[test]
    fn signatures_are_verified() {
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
                .collect()
        };
        let key = bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        let signature = bytes(
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        );
        assert!(verify_ed25519(&key, b"", &signature));
        assert!(!verify_ed25519(&key, b"x", &signature));
        assert!(!verify_ed25519(&key, b"", &signature[..63]));
        assert!(!verify_ed25519(&key[..31], b"", &signature));
        assert!(!verify_ed25519(&[0; 32], b"", &signature));
    }

    /// The key in the certificate verifies what the identity signs.
    #[test]
    fn an_identity_signs() {
        let identity = Identity::generate("party-0").unwrap();
        let signature = identity.sign(b"head").unwrap();
        let der = identity.inner.certified.end_entity_cert().unwrap();
        let prefix = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
        let at = der.windows(prefix.len()).position(|w| w == prefix).unwrap() + prefix.len();
        let key = &der[at..at + 32];
        assert!(verify_ed25519(key, b"head", &signature));
        assert!(!verify_ed25519(key, b"other", &signature));
    }

    #[test]
    fn fingerprints_are_read_in_the_usual_spellings() {
        let colons = (0..32)
            .map(|i| format!("{i:02X}"))
            .collect::<Vec<_>>()
            .join(":");
        let bytes = parse_fingerprint(&colons).unwrap();
        assert_eq!(bytes[31], 31);
        assert!(parse_fingerprint("abc").is_err());
        assert!(parse_fingerprint(&"g".repeat(64)).is_err());
        assert!(parse_fingerprint(&"é".repeat(64)).is_err());
    }
}
