//! The certificates and keys of one control plane.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::Error;

/// Names and addresses under which the API server is reached.
const SERVER_NAMES: [&str; 7] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
];

/// Who gets a certificate: the name of its kubeconfig, the user, and the group.
const CLIENTS: [(&str, &str, Option<&str>); 7] = [
    ("admin", "admin", Some("system:masters")),
    ("controller-manager", "system:kube-controller-manager", None),
    // What a node of the control plane needs (crate `innkeeper-node`).
    ("kubelet", "system:node:node", Some("system:nodes")),
    ("kubelet-2", "system:node:node-2", Some("system:nodes")),
    ("scheduler", "system:kube-scheduler", None),
    ("proxy", "system:kube-proxy", None),
    ("dns", "innkeeper:dns", None),
];

/// Paths of the files written by [`Certificates::make`], and the clients' in memory.
pub(crate) struct Certificates {
    pub(crate) ca: PathBuf,
    pub(crate) server: PathBuf,
    pub(crate) server_key: PathBuf,
    pub(crate) service_account_key: PathBuf,
    pub(crate) service_account_public_key: PathBuf,
    pub(crate) ca_pem: String,
    /// The API server's own as a client of kubelets, a file each.
    pub(crate) kubelet_client: (PathBuf, PathBuf),
    /// By the name of the kubeconfig.
    pub(crate) clients: BTreeMap<&'static str, ClientCertificate>,
}

/// A client's certificate and key, as PEM.
pub(crate) struct ClientCertificate {
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl Certificates {
    /// Makes one authority and all that it signs, as PEM files in `folder`. The API server
    /// is reached at `address` too.
    pub(crate) fn make(folder: &Path, address: Ipv4Addr) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "innkeeper-test-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let server_key = KeyPair::generate()?;
        let mut names = SERVER_NAMES.map(String::from).to_vec();
        names.push(address.to_string());
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server = params.signed_by(&server_key, &ca)?;

        let service_account_key = KeyPair::generate()?;
        let mut clients = BTreeMap::new();
        for (name, user, group) in CLIENTS {
            clients.insert(name, client(&ca, user, group)?);
        }
        let kubelet_client = client(&ca, "kube-apiserver-kubelet-client", Some("system:masters"))?;
        Ok(Self {
            ca: write(folder, "ca.crt", &ca.pem())?,
            server: write(folder, "server.crt", &server.pem())?,
            server_key: write(folder, "server.key", &server_key.serialize_pem())?,
            service_account_key: write(folder, "sa.key", &service_account_key.serialize_pem())?,
            service_account_public_key: write(
                folder,
                "sa.pub",
                &service_account_key.public_key_pem(),
            )?,
            ca_pem: ca.pem(),
            kubelet_client: (
                write(folder, "kubelet-client.crt", &kubelet_client.certificate_pem)?,
                write(folder, "kubelet-client.key", &kubelet_client.key_pem)?,
            ),
            clients,
        })
    }
}

/// A client certificate: `user` is the common name, `group` the organisation.
fn client(
    ca: &CertifiedIssuer<'_, KeyPair>,
    user: &str,
    group: Option<&str>,
) -> Result<ClientCertificate, Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, ca)?;
    Ok(ClientCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
}

fn write(folder: &Path, name: &str, pem: &str) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    fs::write(&path, pem).map_err(Error::file(&path))?;
    Ok(path)
}
