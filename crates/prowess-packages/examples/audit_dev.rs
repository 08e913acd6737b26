use prowess_packages::{AuditFile, AuditLimits, audit_files, audit_folder};
use std::{path::Path, time::Instant};
fn unescape(t: &str) -> Vec<u8> {
    if let Some(h) = t.trim().strip_prefix("hex:") {
        return (0..h.len() / 2)
            .map(|i| u8::from_str_radix(&h[2 * i..2 * i + 2], 16).unwrap())
            .collect();
    }
    let mut o = String::new();
    let mut rest = t;
    while let Some(i) = rest.find("\\u{") {
        o += &rest[..i];
        let e = rest[i..].find('}').unwrap() + i;
        o.push(char::from_u32(u32::from_str_radix(&rest[i + 3..e], 16).unwrap()).unwrap());
        rest = &rest[e + 1..];
    }
    (o + rest).into_bytes()
}
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "cases" {
        let text = std::fs::read_to_string(&args[1]).unwrap();
        let (mut n, mut e, mut w) = (0, 0, 0);
        for case in text.split("\n=== ").skip(1) {
            let (head, body) = case.split_once('\n').unwrap();
            let files: Vec<(String, Vec<u8>)> = format!("\n{body}")
                .split("\n--- file ")
                .skip(1)
                .map(|f| {
                    let (p, t) = f.split_once('\n').unwrap();
                    (String::from_utf8(unescape(p)).unwrap(), unescape(t))
                })
                .collect();
            if let Some(out) = args.get(2) {
                for (p, b) in &files {
                    let p = Path::new(out).join(head.split(" | ").next().unwrap()).join(p);
                    std::fs::create_dir_all(p.parent().unwrap()).unwrap();
                    std::fs::write(p, b).unwrap();
                }
            }
            let files: Vec<AuditFile> = files.iter().map(|(p, b)| AuditFile::new(p, b)).collect();
            let r = audit_files(&files, &AuditLimits::default());
            let worst = r.worst().map_or("none", |s| s.as_str());
            n += 1;
            e += usize::from(worst == "error");
            w += usize::from(worst == "error" || worst == "warning");
            let codes: Vec<String> = r
                .findings
                .iter()
                .map(|f| format!("{}:{}", f.finding.rule.code, f.finding.severity))
                .collect();
            println!("{worst:8} {head:40} {}", codes.join(" "));
        }
        println!("{n} cases, {e} error, {w} warning or error");
        return;
    }
    let start = Instant::now();
    let r = audit_folder(Path::new(&args[0]), &AuditLimits::default()).unwrap();
    let t = start.elapsed();
    let mut by = std::collections::BTreeMap::<String, [usize; 3]>::new();
    for f in &r.findings {
        let f = &f.finding;
        let p = f.path.strip_prefix(&args[0]).unwrap().to_string_lossy().into_owned();
        let depth: usize = args.get(2).map_or(2, |d| d.parse().unwrap());
        let key = p.split('/').take(depth).collect::<Vec<_>>().join("/");
        by.entry(key).or_default()[f.severity as usize] += 1;
        let min = match args.get(1).map(String::as_str) {
            Some("w") => 1,
            Some("i") => 0,
            Some("q") => 9,
            _ => 2,
        };
        if f.severity as usize >= min {
            println!(
                "{} {} {}:{} {}\n      {}",
                f.severity,
                f.rule.code,
                p,
                f.line.unwrap_or(0),
                f.message,
                f.excerpt.as_deref().unwrap_or("").chars().take(260).collect::<String>()
            );
        }
    }
    let e = by.values().filter(|it| it[2] > 0).count();
    let w = by.values().filter(|it| it[2] + it[1] > 0).count();
    println!(
        "{} skills, {} files, {} bytes, {t:?}; units with error {e}, warning {w}",
        r.skills, r.files, r.bytes
    );
}
