//! A certificate of a server on this machine, and the authority that signs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Files in a temporary directory, made by `openssl`.
pub struct ServerCertificate {
    directory: TempDir,
}

impl ServerCertificate {
    /// Creates an authority, and a certificate for `localhost` and `127.0.0.1`.
    pub fn create() -> Self {
        let certificate = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        let place = certificate.directory.path();
        make_certificate(place, "authority", &["-addext", "basicConstraints=critical,CA:TRUE"]);
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
        let signed = ["-CA", "authority.pem", "-CAkey", "authority.key", "-addext", names];
        make_certificate(place, "server", &[&signed[..], &["-addext", "basicConstraints=critical,CA:FALSE"]].concat());
        certificate
    }

    /// Returns the certificate of the authority.
    pub fn authority(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }

    pub fn server(&self) -> PathBuf {
        self.directory.path().join("server.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.directory.path().join("server.key")
    }
}

fn make_certificate(place: &Path, name: &str, options: &[&str]) {
    let mut openssl = Command::new("openssl");
    openssl.current_dir(place).args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-nodes", "-days", "2", "-subj", &format!("/CN={name}")]);
    openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]).args(options);
    let output = openssl.output().expect("`scripts/setup` installs openssl");
    assert!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
}
