//! A server of SSH on this machine.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

/// `sshd` for the user of the test, who has one key. Ended when dropped.
pub(crate) struct SshServer {
    process: Child,
    pub(crate) port: u16,
    pub(crate) user: String,
    /// `ssh` with the key.
    pub(crate) command: String,
    /// `ssh` with a key that the server does not know.
    pub(crate) command_without_key: String,
    /// `ssh` that does not know the server.
    pub(crate) command_without_host: String,
}

impl SshServer {
    pub(crate) fn start(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        for name in ["host", "user", "stranger"] {
            let key = folder.join(name);
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(&key)
                .status()
                .unwrap();
            assert!(made.success());
        }
        fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = folder.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized\n\
             PidFile none\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             StrictModes no\nPermitRootLogin yes\n"
        );
        fs::write(folder.join("config"), config).unwrap();
        // It wants this folder if root starts it.
        let _ = fs::create_dir_all("/run/sshd");
        let mut process = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(folder.join("config"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let is_up = lines.any(|it| it.unwrap().contains("Server listening on"));
        assert!(is_up);
        // What it says later is read, so that it is not held up.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let ssh = |key: &str| {
            format!(
                "ssh -o BatchMode=yes -F none -i {at}/{key} -o IdentitiesOnly=yes \
                 -o StrictHostKeyChecking=no -o UserKnownHostsFile={at}/known"
            )
        };
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap().trim().to_owned();
        Self {
            process,
            port,
            user,
            command: ssh("user"),
            command_without_key: ssh("stranger"),
            command_without_host: ssh("user").replace("=no", "=yes").replace("/known", "/none"),
        }
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
