//! Images that answer HTTP.

use anyhow::Result;

use super::{USER, busybox_tree, strings};
use crate::{Image, Run, Sources, Tree};

/// The user as which nginx answers.
const NGINX: u32 = 101;

/// busybox's httpd on port 8080, whose every page begins with `text`.
///
/// # Errors
/// If busybox or a library of it is not found.
pub fn page(sources: &Sources, text: &str) -> Result<Image> {
    let mut tree = busybox_tree(sources)?;
    tree.text("/www/index.html", 0o644, format!("{text}\n"));
    // The first process of a container ignores signals that it does not ask for: the shell asks.
    let serve = "httpd -f -p 8080 -h /www & trap 'kill $!; exit 0' TERM INT; wait $!";
    let command = strings(&["/bin/sh", "-c", serve]);
    Image::new(&tree, &Run { command, user: USER.to_owned(), ..Run::default() })
}

/// nginx on port 80, with a page of its own and `/etc/nginx/conf.d` for more.
///
/// # Errors
/// If nginx or a library of it is not found.
pub fn nginx(sources: &Sources) -> Result<Image> {
    let mut tree = nginx_tree(sources)?;
    tree.text("/usr/share/nginx/html/index.html", 0o644, "Welcome to nginx!\n");
    Image::new(&tree, &nginx_run())
}

/// Answers `OK` to whatever is asked, on port 8080.
///
/// # Errors
/// If nginx or a library of it is not found.
pub fn always200(sources: &Sources) -> Result<Image> {
    let mut tree = nginx_tree(sources)?;
    let server = "server { listen 8080; location / { return 200 \"OK\\n\"; } }\n";
    tree.text("/etc/nginx/conf.d/always200.conf", 0o644, server);
    Image::new(&tree, &nginx_run())
}

fn nginx_tree(sources: &Sources) -> Result<Tree> {
    let mut tree = Tree::new();
    sources.add(&mut tree, "nginx")?;
    tree.text("/etc/nginx/nginx.conf", 0o644, include_str!("../files/nginx.conf"));
    tree.folder("/etc/nginx/conf.d", 0o755, 0);
    tree.folder("/usr/share/nginx/html", 0o755, 0);
    tree.folder("/var/lib/nginx", 0o755, NGINX);
    tree.folder("/var/log/nginx", 0o755, NGINX);
    tree.folder("/run", 0o755, 0);
    tree.users(&[("nginx", NGINX, "/var/lib/nginx")]);
    Ok(tree)
}

fn nginx_run() -> Run {
    let command = strings(&["/usr/bin/nginx", "-c", "/etc/nginx/nginx.conf", "-g", "daemon off;"]);
    Run { command, ..Run::default() }
}
