//! The certificate authorities that are trusted.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};

/// The trusted certificate authorities: those of the system, and additional ones.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    own: Vec<CertificateDer<'static>>,
    /// Created with the first TLS connection.
    config: OnceLock<Arc<ClientConfig>>,
}

/// A certificate could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the certificates")]
pub struct CertificateError {
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl Trust {
    /// Trusts these authorities (PEM) in addition to those of the system.
    pub(crate) fn new(pem: &[u8]) -> Result<Self, CertificateError> {
        let own: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let own = own.map_err(|it| CertificateError { source: it.into() })?;
        for certificate in &own {
            let added = RootCertStore::empty().add(certificate.clone());
            added.map_err(|it| CertificateError { source: it.into() })?;
        }
        Ok(Self { own, config: OnceLock::new() })
    }

    /// Returns the TLS configuration. Sessions are not resumed.
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.config
            .get_or_init(|| {
                let mut trusted = RootCertStore::empty();
                trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                trusted.add_parsable_certificates(self.own.iter().cloned());
                let mut config =
                    ClientConfig::builder_with_provider(ring::default_provider().into())
                        .with_safe_default_protocol_versions()
                        .expect("the provider knows the versions of TLS that are in use")
                        .with_root_certificates(trusted)
                        .with_no_client_auth();
                config.resumption = Resumption::disabled();
                Arc::new(config)
            })
            .clone()
    }
}
