//! An MCP server with skills, whose messages a test decides.

use std::sync::{Arc, Mutex};

use prowess_mcp::config::ServerSetting;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::{
    server::{Server, answer},
    skill_servers::setting,
    world::{SETTINGS, World},
};

/// A server whose messages a test decides.
#[derive(Debug)]
pub struct SkillHost {
    listener: Server,
    pub says: Arc<Mutex<Says>>,
}

/// The messages of a server: its lists, and the content of URIs.
#[derive(Debug, Default)]
pub struct Says {
    /// The answer to `skills/list`, by the cursor.
    pub pages: Vec<Json>,
    pub endless: Option<Json>,
    pub files: Vec<(String, Json)>,
    /// Whether it knows only 2026-07-28.
    pub is_new: bool,
    /// Whether it knows both revisions, and offers skills only in 2026-07-28, as FastMCP does.
    pub is_split: bool,
    /// The requests it got: methods, with the URI if there is one.
    asked: Vec<String>,
}

impl SkillHost {
    pub fn start() -> Self {
        let says = Arc::new(Mutex::new(Says::default()));
        let own = says.clone();
        let listener = Server::new(move |heard, client| {
            if !heard.line.starts_with("POST") {
                return client.write_all(answer("405 Method Not Allowed", "", "").as_bytes());
            }
            let message: Json = serde_json::from_str(&heard.body).unwrap();
            let method = message["method"].as_str().unwrap_or_default();
            let mut own = own.lock().unwrap();
            let Some(result) = own.answer(method, &message["params"]) else {
                return client.write_all(answer("202 Accepted", "", "").as_bytes());
            };
            let is_new = own.is_new || own.is_split && is_modern(&message["params"]);
            let session = if is_new { "" } else { "mcp-session-id: s\r\n" };
            let head = format!("content-type: application/json\r\n{session}");
            let mut body = json!({"jsonrpc": "2.0", "id": message["id"]});
            let mut status = "200 OK";
            match result {
                Ok(result) => body["result"] = result,
                Err(error) => {
                    body["error"] = json!({"code": -32602, "message": error});
                    status = if is_new { "400 Bad Request" } else { status };
                }
            }
            client.write_all(answer(status, &head, &body.to_string()).as_bytes())
        });
        Self { listener, says }
    }

    /// Lists these entries on one page.
    pub fn listing(self, entries: Vec<Json>) -> Self {
        self.list(entries);
        self
    }

    pub fn list(&self, entries: Vec<Json>) {
        self.says.lock().unwrap().pages = vec![json!({ "skills": entries })];
    }

    /// Answers a URI with this text.
    pub fn telling(self, uri: &str, text: &str) -> Self {
        self.tell(uri, json!([{"uri": uri, "text": text}]));
        self
    }

    pub fn tell(&self, uri: &str, contents: Json) {
        let files = &mut self.says.lock().unwrap().files;
        files.retain(|it| it.0 != uri);
        files.push((uri.to_owned(), contents));
    }

    /// Returns the requests since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.says.lock().unwrap().asked)
    }

    pub fn url(&self) -> String {
        self.listener.url("/mcp")
    }

    /// Returns the settings of a user with this server.
    pub fn settings(&self) -> String {
        let url = self.url();
        format!("policy.hosts = [\"127.0.0.1\"]\n[servers.docs]\nurl = \"{url}\"\n")
    }

    /// Returns a world whose user has this server.
    pub fn world(&self) -> World {
        World::new().file(SETTINGS, self.settings())
    }

    /// Returns the server as a user sets it.
    pub fn setting(&self) -> ServerSetting {
        setting("docs", &json!({ "url": self.url() }))
    }
}

impl Says {
    fn answer(&mut self, method: &str, params: &Json) -> Option<Result<Json, String>> {
        let uri = params["uri"].as_str().unwrap_or_default();
        self.asked.push(format!("{method} {uri}").trim_end().to_owned());
        let is_modern = is_modern(params);
        if self.is_new && !is_modern {
            return Some(Err("nobody says which revision is spoken".to_owned()));
        }
        if self.is_split && !is_modern && method.starts_with("skills/") {
            return Some(Err("not available at protocol version '2025-11-25'".to_owned()));
        }
        let result = self.result(method, params, uri)?;
        Some(result.map(|mut it| {
            if self.is_split && !is_modern {
                it["capabilities"].as_object_mut().map(|it| it.remove("extensions"));
            }
            if self.is_new || self.is_split && is_modern {
                it["resultType"] = json!("complete");
                (it["ttlMs"], it["cacheScope"]) = (json!(0), json!("private"));
                it["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "x"}});
            }
            it
        }))
    }

    fn result(&self, method: &str, params: &Json, uri: &str) -> Option<Result<Json, String>> {
        Some(Ok(match method {
            "initialize" | "server/discover" => json!({
                "protocolVersion": params["protocolVersion"],
                "supportedVersions": ["2026-07-28"],
                "capabilities": {
                    "tools": {}, "resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}},
                },
                "serverInfo": {"name": "trusted", "version": "1"},
            }),
            "tools/list" => {
                json!({"tools": [{"name": "skill", "inputSchema": {"type": "object"}}]})
            }
            "skills/list" => {
                let page = params["cursor"].as_str().map_or(0, |it| it.parse().unwrap());
                match &self.endless {
                    Some(cursor) => {
                        let next = match cursor {
                            Json::Null => json!((page + 1).to_string()),
                            cursor => cursor.clone(),
                        };
                        json!({"skills": [good(&format!("n{page}"))], "nextCursor": next})
                    }
                    None => self.pages[page].clone(),
                }
            }
            "skills/get" => {
                let skills = self.pages.iter().flat_map(|it| it["skills"].as_array().unwrap());
                match { skills }.find(|it| it["uri"] == uri) {
                    Some(skill) => json!({ "skill": skill }),
                    None => return Some(Err("no such skill".to_owned())),
                }
            }
            "resources/read" => match self.files.iter().find(|it| it.0 == uri) {
                Some((_, contents)) => json!({ "contents": contents }),
                None => return Some(Err("no such file".to_owned())),
            },
            _ => return None,
        }))
    }
}

/// Returns whether a request is one of 2026-07-28.
fn is_modern(params: &Json) -> bool {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
}

/// Returns the `SKILL.md` of a skill.
pub fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: does it\n---\n\nThe text of {name}.\n")
}

pub fn uri(name: &str) -> String {
    format!("skill://{name}/SKILL.md")
}

/// Returns an entry for files with these contents.
pub fn entry(name: &str, files: &[(&str, &str)]) -> Json {
    let resources: Vec<Json> = files
        .iter()
        .map(|(path, text)| {
            let digest: String = Sha256::digest(text).iter().map(|it| format!("{it:02x}")).collect();
            json!({"uri": format!("skill://{name}/{path}"), "digest": format!("sha256:{digest}"), "size": text.len()})
        })
        .collect();
    json!({"uri": uri(name), "frontmatter": {"name": name, "description": "does it"}, "resources": resources})
}

/// Returns the entry of a valid skill.
pub fn good(name: &str) -> Json {
    entry(name, &[("SKILL.md", &document(name))])
}

/// Returns a host with one good skill of two files.
pub fn host() -> SkillHost {
    let files = [("SKILL.md", &*document("one")), ("a b.md", "more")];
    let mut entry = entry("one", &files);
    entry["resources"][1]["uri"] = json!("skill://one/a%20b.md");
    SkillHost::start()
        .listing(vec![entry])
        .telling(&uri("one"), &document("one"))
        .telling("skill://one/a%20b.md", "more")
}
