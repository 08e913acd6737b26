//! Links within a package become what they point to.

use std::collections::{BTreeMap, VecDeque};

use super::{ArchiveError, tree::Tree};

/// The most links on the way to one target.
const HOPS: usize = 40;

/// Where a link leads.
enum Target {
    Outside,
    Circle,
    Path(String),
}

/// Replaces the links of a tree by copies of what they point to within it; others are left out.
/// No link is ever followed on the disk.
pub(crate) fn replace_links(tree: &mut Tree<'_>) -> Result<(), ArchiveError> {
    let links = std::mem::take(&mut tree.links);
    let originals = tree.files.clone();
    // Where a link is to be, and where it was.
    let mut pending: VecDeque<(String, String)> =
        links.keys().map(|it| (it.clone(), it.clone())).collect();
    while let Some((path, link)) = pending.pop_front() {
        let target = match resolve(&links, &link) {
            Target::Path(target) => target,
            Target::Outside => {
                tree.leave_out(&path, "a link that leads out of the package")?;
                continue;
            }
            Target::Circle => {
                tree.leave_out(&path, "a link that leads to itself")?;
                continue;
            }
        };
        if let Some(file) = originals.get(&target) {
            tree.duplicate(file, &path)?;
            continue;
        }
        let inside = if target.is_empty() { String::new() } else { format!("{target}/") };
        if format!("{link}/").starts_with(&inside) || format!("{path}/").starts_with(&inside) {
            tree.leave_out(&path, "a link to a folder that it is in")?;
            continue;
        }
        let mut is_empty = true;
        let files = originals.range(inside.clone()..);
        for (name, file) in files.take_while(|it| it.0.starts_with(&inside)) {
            tree.duplicate(file, &format!("{path}/{}", &name[inside.len()..]))?;
            is_empty = false;
        }
        let nested = links.range(inside.clone()..);
        for (name, _) in nested.take_while(|it| it.0.starts_with(&inside)) {
            tree.count()?;
            pending.push_back((format!("{path}/{}", &name[inside.len()..]), name.clone()));
            is_empty = false;
        }
        if is_empty {
            tree.leave_out(&path, "a link to nothing in the package")?;
        }
    }
    Ok(())
}

/// Returns where a link leads, following others on the way.
fn resolve(links: &BTreeMap<String, String>, link: &str) -> Target {
    let mut place: Vec<String> = link.split('/').map(str::to_owned).collect();
    place.pop();
    let mut names: Vec<String> = match links.get(link) {
        Some(target) if target.starts_with('/') || target.contains(':') => return Target::Outside,
        Some(target) => target.split('/').rev().map(str::to_owned).collect(),
        None => return Target::Outside,
    };
    let mut hops = 0;
    while let Some(name) = names.pop() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                if place.pop().is_none() {
                    return Target::Outside;
                }
                continue;
            }
            _ => place.push(name),
        }
        let Some(target) = links.get(&place.join("/")) else { continue };
        hops += 1;
        if hops > HOPS {
            return Target::Circle;
        }
        if target.starts_with('/') || target.contains(':') {
            return Target::Outside;
        }
        place.pop();
        names.extend(target.split('/').rev().map(str::to_owned));
    }
    Target::Path(place.join("/"))
}
