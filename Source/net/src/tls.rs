//! TLS 1.3 with both sides pinned: a certificate is accepted by its SHA-256 fingerprint alone; names, dates and issuers
//! are ignored. The handshake signature is verified as usual, so a listed certificate without its key is of no use.
//!
//! Key exchange is X25519MLKEM768 alone (draft-ietf-tls-ecdhe-mlkem): X25519 and ML-KEM-768 of FIPS 203, both of which an attacker must
//! break who records a connection now and has a quantum computer later. There is no second group: all parties run the same version, so
//! a peer without this group is an old version or a downgrade.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, CommonState, DigitallySignedStruct,
    DistinguishedName, Error, PeerIncompatible, PeerMisbehaved, ServerConfig, SignatureScheme,
    SupportedCipherSuite,
};

use crate::identity::{Identity, sha256};

/// The protocol name that a KeyQuorum port expects, so that it is not taken for another TLS port.
const ALPN: &[u8] = b"keyquorum";

/// The server name that the TLS library asks for; it is not checked, and not sent.
pub(crate) fn server_name() -> Result<ServerName<'static>, Error> {
    ServerName::try_from("keyquorum.invalid").map_err(|error| Error::General(error.to_string()))
}

/// The parts of the configuration that all connections of a party share.
pub(crate) struct TlsParts {
    provider: Arc<CryptoProvider>,
    certificate: Arc<SingleCertAndKey>,
}

impl TlsParts {
    pub(crate) fn new(identity: &Identity) -> Self {
        // AES-128 first: as strong as everything else here, and the fastest.
        Self::with_settings(
            identity,
            vec![
                cipher_suite::TLS13_AES_128_GCM_SHA256,
                cipher_suite::TLS13_AES_256_GCM_SHA384,
                cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            ],
            vec![kx_group::X25519MLKEM768],
        )
    }

    pub(crate) fn with_settings(
        identity: &Identity,
        cipher_suites: Vec<SupportedCipherSuite>,
        kx_groups: Vec<&'static dyn SupportedKxGroup>,
    ) -> Self {
        let provider = CryptoProvider {
            cipher_suites,
            kx_groups,
            ..aws_lc_rs::default_provider()
        };
        Self {
            provider: Arc::new(provider),
            certificate: Arc::new(SingleCertAndKey::from(identity.certified_key())),
        }
    }

    /// A verifier of certificates with these fingerprints, and the fingerprint that it will see.
    fn pinned(&self, listed: Arc<[[u8; 32]]>) -> (Arc<Pinned>, Arc<Seen>) {
        let seen = Arc::new(Seen::default());
        let verifier = Pinned {
            listed,
            seen: Arc::clone(&seen),
            provider: Arc::clone(&self.provider),
        };
        (Arc::new(verifier), seen)
    }

    /// Settings to dial a peer, and the fingerprint that it will show.
    pub(crate) fn client(
        &self,
        expected: [u8; 32],
    ) -> Result<(Arc<ClientConfig>, Arc<Seen>), Error> {
        let (verifier, seen) = self.pinned(Arc::new([expected]));
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::clone(&self.certificate) as _);
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok((Arc::new(config), seen))
    }

    /// Settings to accept one connection from any of the listed parties, and the fingerprint that it will show.
    pub(crate) fn server(
        &self,
        listed: Arc<[[u8; 32]]>,
    ) -> Result<(Arc<ServerConfig>, Arc<Seen>), Error> {
        let (verifier, seen) = self.pinned(listed);
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::clone(&self.certificate) as _);
        // No resumption. And the dialling end must have read everything when it closes, or its last bytes could be lost.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok((Arc::new(config), seen))
    }
}

/// The fingerprint that the other end showed, if the handshake came to that.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Option<[u8; 32]>>);

impl Seen {
    pub(crate) fn get(&self) -> Option<[u8; 32]> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, certificate: &[u8]) -> [u8; 32] {
        let fingerprint = sha256(certificate);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(fingerprint);
        fingerprint
    }
}

/// The error by which a verifier refuses a certificate that is not listed; the other end sees [`is_refusal`].
fn not_listed() -> Error {
    Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
}

/// Whether we refused the other end's certificate.
pub(crate) fn is_not_listed(error: &Error) -> bool {
    *error == not_listed()
}

/// Whether the other end refused our certificate.
pub(crate) fn is_refusal(error: &Error) -> bool {
    *error == Error::AlertReceived(AlertDescription::AccessDenied)
}

/// Whether the handshake failed because one end offers no key exchange that the other one takes. At the dialling end also for other
/// settings without an overlap, of which this is the only one that differs between versions.
pub(crate) fn is_other_key_exchange(error: &Error) -> bool {
    matches!(
        error,
        Error::AlertReceived(AlertDescription::HandshakeFailure)
            | Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon)
            | Error::PeerMisbehaved(
                PeerMisbehaved::IllegalHelloRetryRequestWithUnofferedNamedGroup
                    | PeerMisbehaved::WrongGroupForKeyShare
            )
    )
}

/// What the TLS of a connection uses, by the names of the standards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSecurity {
    /// Version of TLS.
    pub protocol: String,
    /// Group of the key exchange.
    pub key_exchange: String,
    /// Cipher suite.
    pub cipher_suite: String,
}

impl LinkSecurity {
    /// Of a connection after its handshake.
    pub(crate) fn of(connection: &CommonState) -> Self {
        let protocol = connection.protocol_version();
        let group = connection.negotiated_key_exchange_group();
        let suite = connection.negotiated_cipher_suite();
        let name = |name: Option<String>| name.unwrap_or_else(|| "unknown".to_owned());
        Self {
            protocol: name(protocol.map(|version| format!("{version:?}"))),
            key_exchange: name(group.map(|group| format!("{:?}", group.name()))),
            cipher_suite: name(suite.map(|suite| format!("{:?}", suite.suite()))),
        }
    }
}

/// Accepts certificates by their fingerprint, at either end of a connection.
#[derive(Debug)]
struct Pinned {
    listed: Arc<[[u8; 32]]>,
    seen: Arc<Seen>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        if self.listed.contains(&self.seen.note(certificate)) {
            Ok(())
        } else {
            Err(not_listed())
        }
    }
}

/// The methods that both traits of verifiers have: signatures of the handshake, TLS 1.3 only.
macro_rules! handshake_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.2 is not supported".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, cert, dss, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider
                .signature_verification_algorithms
                .supported_schemes()
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity)?;
        Ok(ServerCertVerified::assertion())
    }

    handshake_signatures!();
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity)?;
        Ok(ClientCertVerified::assertion())
    }

    handshake_signatures!();
}
