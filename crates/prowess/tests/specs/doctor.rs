//! The verdicts of other clients on skills.

use std::{fmt::Write as _, fs};

use prowess::{CLIENTS, Citation, Clash, Client, Fact, SettingsFormat, Spot, Verdict, mcp_clients};

/// The page about clients, from the table.
fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for client in CLIENTS {
        write!(page, "\n## {}\n\n`{}`. {}\n", client.label, client.name, looks(client)).unwrap();
        if let Some(room) = client.room {
            writeln!(
                page,
                "From about {room} characters of names and descriptions on, some are shortened or left out."
            )
            .unwrap();
        }
        if client.facts.is_empty() {
            page.push_str(
                "What it does with a skill that does not follow the specification is not known.\n",
            );
        }
        page.push('\n');
        let directories = client.source;
        writeln!(page, "- *directories*: [{}]({})", directories.checked, directories.url).unwrap();
        for Fact { verdict, symptoms, source, .. } in client.facts {
            let symptoms: Vec<String> = symptoms.iter().map(|it| it.about()).collect();
            let (url, checked) = (source.url, source.checked);
            writeln!(page, "- *{verdict}*: {} ([{checked}]({url}))", symptoms.join("; ")).unwrap();
        }
    }
    page
}

fn looks(client: &Client) -> String {
    let named = |it: &Spot| match it.upwards {
        true => format!("`{}` and the same in the folders above", it.path),
        false => format!("`{}`", it.path),
    };
    let spots: Vec<String> = client.spots.iter().map(named).collect();
    let clash = match client.clash {
        _ if spots.is_empty() => return "Whoever uses it names the directories.".to_owned(),
        Clash::First => "of two skills with one name the first is taken",
        Clash::Both => "two skills with one name are both taken",
        Clash::Random => "of two skills with one name chance takes one",
        Clash::Unknown => "which of two skills with one name is taken is not known",
        other => panic!("there are no words for {other:?}"),
    };
    let quoted =
        |all: &[&str]| all.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    let programs = match client.programs {
        [] => String::new(),
        all => format!(", or the program {}", quoted(all)),
    };
    let installed = match client.markers {
        [] => String::new(),
        all => format!(" It counts as installed where there is {}{programs}.", quoted(all)),
    };
    let folder = if client.by_folder { " A skill goes by the name of its folder." } else { "" };
    format!("It looks into {}; {clash}.{folder}{installed}", spots.join(", "))
}

/// The table of the settings in which clients register MCP servers.
fn settings_table() -> String {
    let mut table = "\
| `NAME` | Client | For all projects (`--user`, the default) | For one project (`--project`) | Servers at | Source |
| --- | --- | --- | --- | --- | --- |
"
    .to_owned();
    for (Client { name, label, .. }, settings) in mcp_clients() {
        let on_mac = settings.mac.map(|it| format!("on macOS {}", files(it)));
        let user = [(!settings.user.is_empty()).then(|| files(settings.user)), on_mac];
        let user = user.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let [user, project] = [user, files(settings.project)].map(|it| match it.as_str() {
            "" => "–".to_owned(),
            _ => it,
        });
        let mut servers = format!("`{}`", keys(settings.format, settings.servers));
        if let Some(newer) = settings.newer {
            let newer = keys(settings.format, newer);
            write!(servers, ", or `{newer}` in a file that has it").unwrap();
        }
        let Citation { url, checked, .. } = settings.source;
        writeln!(
            table,
            "| `{name}` | {label} | {user} | {project} | {servers} | [{checked}]({url}) |"
        )
        .unwrap();
    }
    table
}

fn files(paths: &[&str]) -> String {
    paths.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(" or ")
}

fn keys(format: SettingsFormat, keys: &[&str]) -> String {
    let quoted = keys.iter().map(|it| match it.contains('.') {
        true => format!("\"{it}\""),
        false => (*it).to_owned(),
    });
    let keys = quoted.collect::<Vec<_>>().join(".");
    if format == SettingsFormat::Toml { format!("[{keys}.NAME]") } else { keys }
}

const INTRODUCTION: &str = "\
# What clients do with skills

`prowess doctor` says which clients would find a skill, load it, and show it, and what to do where they would not. This page is what
it knows: one part for each client, with the page or file that says so and the day it was looked up. What is not
listed is not known, and `doctor` says so. A client that follows links, looks deeper, or reads more than this page says may have
learned it since: tell us, with a source.

| word | what becomes of the skill |
| --- | --- |
| *loads* | it is taken as it is |
| *asks* | it is taken once somebody trusts the folder |
| *cut* | it is taken, and a part of it is not shown |
| *hidden* | it is taken, and not shown to the model, or not to people |
| *unknown* | nobody has written down what the client does |
| *shadowed* | another of its name is taken |
| *refused* | it is found, and not taken |
| *unseen* | it is not found |

`prowess doctor` exits 1 when a client that looks where a skill lies does not take it: *refused*, *shadowed*, or *unseen* because it
overlooks the file. Only clients that are installed for this user or used in this project are judged; where none is found, all are. `--all` judges every
client of this page. What its author wants (*hidden*), what a person still has to do (*asks*), and what nobody knows are no faults. With
`--client NAME`, it is one too when the client looks elsewhere, unless it finds a copy of the skill, the same to the byte.

What is not looked at: skills of plugins and extensions, directories that the settings of a client add, managed directories of
an organisation, and what a skill asks of the machine. A client counts as installed by the files and programs that its part of this page
names; most are those by which `npx skills` detects it.

`prowess doctor --json` prints one document; fields are added, and none is taken away:

| field | what it says |
| --- | --- |
| `clients` | the clients that were asked about, in the order of this page |
| `clients[].name` | what a client is called here |
| `clients[].label` | what its makers call it |
| `clients[].installed_at` | what shows that it is installed or used here; `null` where nothing does |
| `clients[].is_told_where` | whether whoever uses it names the directories, so that it may not find what it would take |
| `clients[].verdicts` | how many skills there are of each word of the table above |
| `skills` | the skills, by name and path |
| `skills[].name` | its name; that of its folder where it has none |
| `skills[].path` | its file |
| `skills[].verdicts` | what becomes of it in each client, by the client's name |
| `skills[].notes` | why, the worst first for each client |
| `skills[].notes[].client` | the client |
| `skills[].notes[].verdict` | what becomes of the skill for this reason |
| `skills[].notes[].reason` | what is so |
| `skills[].notes[].fix` | what to do about it; `null` where it is meant so |
| `skills[].notes[].fixable` | whether `prowess check --fix` does that |
| `skills[].notes[].source` | who says so; `null` where nobody does |
| `skills[].notes[].checked` | when that was looked up |
| `skills[].elsewhere` | what to do about clients that look elsewhere; `null` where there is none |
| `skills[].elsewhere.directory` | where a copy would reach most of them |
| `skills[].elsewhere.reaches` | those that it would reach |
| `crowded` | the clients that have more names and descriptions than room |
| `crowded[].client` | the client |
| `crowded[].skills` | how many skills it would show |
| `crowded[].characters` | how many characters their names and descriptions have |
| `crowded[].room` | about how many of them it shows |
| `findings` | what could not be looked at, as `prowess check --json` says it |
";

mod what_is_known_of_clients_is_written_down {
    use super::*;

    #[test]
    fn the_page_about_clients_says_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clients.md");
        let page = page();
        assert!(Verdict::ALL.iter().all(|it| page.contains(&format!("| *{it}* |"))));
        if std::env::var_os("PROWESS_WRITE_DOCS").is_some() {
            fs::write(path, &page).unwrap();
        }
        let written = fs::read_to_string(path).unwrap_or_default();
        assert!(written == page, "with PROWESS_WRITE_DOCS=1 this test writes docs/clients.md anew");
    }

    #[test]
    fn the_page_about_clients_of_mcp_has_the_table_of_their_settings() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp-clients.md");
        let page = fs::read_to_string(path).unwrap();
        let table = settings_table();
        let start = page.find(table.lines().next().unwrap()).expect("the page has the heading");
        let end = start + page[start..].find("\n\n").unwrap() + 1;
        if std::env::var_os("PROWESS_WRITE_DOCS").is_some() {
            fs::write(path, format!("{}{table}{}", &page[..start], &page[end..])).unwrap();
            return;
        }
        let hint = "with PROWESS_WRITE_DOCS=1 this test writes the table in docs/mcp-clients.md";
        assert!(page[start..end] == table, "{hint}");
    }
}
