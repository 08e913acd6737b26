//! All known clients, with the source of each fact and the date when it was checked.
//!
//! A new client is one entry here; a variable that relocates its directory is a row of
//! [`VARIABLES`](super::VARIABLES).
//! Facts that are missing are unknown; nothing is guessed.

use super::{
    citation::Citation,
    client::{Clash, Client, Fact, Preset, Spot},
    mcp::{McpSettings, ServerShape, SettingsFormat},
    symptom::{Form, Letters, Symptom::*},
    verdict::Verdict,
};
use crate::clients::Symptom;

/// The rules of the specification about a name.
const NAME: Symptom = NameForm(Form::Words);
const FOLDER: Symptom = NameNotFolder(Letters::Exact);

/// A client about which nothing is known but the directories; the source is that for them.
const fn plain(source: &'static Citation) -> Client {
    Client {
        name: "",
        label: "",
        markers: &[],
        programs: &[],
        spots: &[],
        preset: None,
        clash: Clash::Unknown,
        by_folder: false,
        room: None,
        facts: &[],
        source,
        protected: &[],
        mcp: None,
    }
}

/// All clients: the best known or most used ones first, then the others by name.
pub static CLIENTS: &[Client] = &[
    Client {
        name: "claude-code",
        label: "Claude Code",
        markers: &["$CLAUDE_CONFIG_DIR", "~/.claude.json", ".claude"],
        programs: &["claude"],
        spots: &[at("$CLAUDE_CONFIG_DIR/skills"), up(".claude/skills")],
        preset: Some(Preset {
            name: "claude",
            directories: &[".claude/skills", "~/.claude/skills"],
        }),
        clash: Clash::First,
        by_folder: true,
        room: Some(8_000),
        facts: &[
            loads(CLAUDE_CODE, &[NameMissing, NAME, FOLDER, DescriptionMissing, FolderLink]),
            cuts(CLAUDE_CODE, &[DescriptionOver(1536)]),
            hides(CLAUDE_CODE, &[NotForModels, NotForPeople, NotYaml, Garbled]),
        ],
        source: CLAUDE_CODE,
        protected: &[".claude", ".claude.json"],
        mcp: Some(McpSettings {
            project: &[".mcp.json"],
            ..json_settings(&["~/.claude.json"], CLAUDE_CODE_MCP)
        }),
    },
    Client {
        name: "codex",
        label: "Codex",
        markers: &["$CODEX_HOME", "/etc/codex", ".codex"],
        programs: &["codex"],
        spots: &[
            up(".codex/skills"),
            up(".agents/skills"),
            at("$CODEX_HOME/skills"),
            at("~/.agents/skills"),
            at("/etc/codex/skills"),
        ],
        preset: Some(Preset { name: "codex", directories: &[".codex/skills", "~/.codex/skills"] }),
        clash: Clash::Both,
        room: Some(8_000),
        facts: &[
            loads(CODEX, &[AtRoot, FolderLink, NotYaml, NameMissing, NAME, FOLDER]),
            loads(CODEX, &[MetadataNested, NotForModels, NotForPeople]),
            cuts(CODEX, &[DescriptionOver(1024), BodyOver(8_000)]),
            refuses(CODEX, &[NotUtf8, ByteOrderMark, NoFrontmatter, NameOver(64)]),
            refuses(CODEX, &[DescriptionMissing]),
            misses(CODEX, &[Deeper(6), FileLink, FileName]),
        ],
        protected: &[".codex"],
        mcp: Some(McpSettings {
            project: &[".codex/config.toml"],
            format: SettingsFormat::Toml,
            servers: &["mcp_servers"],
            ..json_settings(&["$CODEX_HOME/config.toml"], CODEX_MCP)
        }),
        ..plain(CODEX)
    },
    Client {
        name: "gemini",
        label: "Gemini CLI",
        markers: &["~/.gemini/settings.json", "~/.gemini/skills", ".gemini"],
        programs: &["gemini"],
        spots: &[
            at(".agents/skills"),
            at(".gemini/skills"),
            at("~/.agents/skills"),
            at("~/.gemini/skills"),
        ],
        preset: Some(Preset {
            name: "gemini",
            directories: &[".gemini/skills", "~/.gemini/skills"],
        }),
        clash: Clash::First,
        facts: &[
            loads(GEMINI, &[AtRoot, NotYaml, DuplicateKey, NAME, NameOver(64), FOLDER]),
            loads(GEMINI, &[DescriptionOver(1024), MetadataNested, NotForModels, NotForPeople]),
            loads(GEMINI_DOCS, &[FolderLink]),
            asks(GEMINI_MANAGER, &[InProject]),
            refuses(GEMINI, &[ByteOrderMark, NoFrontmatter, Delimiters]),
            refuses(GEMINI, &[NameMissing, DescriptionMissing]),
            misses(GEMINI, &[Deeper(1), FileName]),
        ],
        protected: &[".gemini"],
        mcp: Some(McpSettings {
            project: &[".gemini/settings.json"],
            ..json_settings(&["~/.gemini/settings.json"], GEMINI_MCP)
        }),
        ..plain(GEMINI_MANAGER)
    },
    Client {
        name: "cursor",
        label: "Cursor",
        markers: &["~/.cursor", ".cursor"],
        programs: &["cursor", "cursor-agent"],
        spots: &[
            at(".agents/skills"),
            at(".cursor/skills"),
            at(".claude/skills"),
            at(".codex/skills"),
            at("~/.agents/skills"),
            at("~/.cursor/skills"),
            at("~/.claude/skills"),
            at("~/.codex/skills"),
        ],
        preset: Some(Preset {
            name: "cursor",
            directories: &[".cursor/skills", "~/.cursor/skills"],
        }),
        facts: &[loads(CURSOR, &[NotForPeople]), hides(CURSOR, &[NotForModels])],
        protected: &[".cursor"],
        mcp: Some(McpSettings {
            project: &[".cursor/mcp.json"],
            ..json_settings(&["~/.cursor/mcp.json"], CURSOR_MCP)
        }),
        ..plain(CURSOR)
    },
    Client {
        name: "vscode",
        label: "VS Code",
        markers: &["~/.vscode", "$XDG_CONFIG_HOME/Code"],
        programs: &["code"],
        spots: &[
            at(".github/skills"),
            at(".agents/skills"),
            at(".claude/skills"),
            at("~/.copilot/skills"),
            at("~/.agents/skills"),
            at("~/.claude/skills"),
        ],
        clash: Clash::First,
        by_folder: true,
        facts: &[
            loads(VSCODE, &[NameMissing, NAME, NameOver(64), FOLDER, DescriptionMissing]),
            loads(VSCODE_LOCATOR, &[FolderLink, FileLink]),
            cuts(VSCODE, &[DescriptionOver(1024)]),
            hides(VSCODE, &[NotForModels, NotForPeople]),
            misses(VSCODE_LOCATOR, &[AtRoot, Deeper(1), FileName]),
        ],
        protected: &[".vscode"],
        mcp: Some(McpSettings {
            project: &[".vscode/mcp.json"],
            mac: Some(&["~/Library/Application Support/Code/User/mcp.json"]),
            servers: &["servers"],
            shape: ServerShape::Typed,
            ..json_settings(&["$XDG_CONFIG_HOME/Code/User/mcp.json"], VSCODE_MCP)
        }),
        ..plain(VSCODE_LOCATIONS)
    },
    Client {
        name: "copilot",
        label: "GitHub Copilot CLI",
        markers: &["$COPILOT_HOME", ".github/skills"],
        programs: &["copilot"],
        spots: &[
            at(".github/skills"),
            at(".agents/skills"),
            at(".claude/skills"),
            up(".github/skills"),
            at("$COPILOT_HOME/skills"),
            at("~/.agents/skills"),
        ],
        preset: Some(Preset {
            name: "copilot",
            directories: &[".github/skills", "~/.copilot/skills"],
        }),
        clash: Clash::First,
        facts: &[
            loads(COPILOT, &[FOLDER]),
            hides(COPILOT_REFERENCE, &[NotForModels, NotForPeople]),
            doubts(COPILOT_REFERENCE, &[NameForm(Form::Spaced)]),
            misses(COPILOT, &[FileName]),
        ],
        mcp: Some(McpSettings {
            project: &[".github/mcp.json"],
            shape: ServerShape::Tools,
            ..json_settings(&["$COPILOT_HOME/mcp-config.json"], COPILOT_MCP)
        }),
        ..plain(COPILOT_REFERENCE)
    },
    Client {
        name: "opencode",
        label: "OpenCode",
        markers: &["$XDG_CONFIG_HOME/opencode", ".opencode"],
        programs: &["opencode"],
        spots: &[
            up(".opencode/skills"),
            up(".opencode/skill"),
            up(".claude/skills"),
            up(".agents/skills"),
            at("$XDG_CONFIG_HOME/opencode/skills"),
            at("$XDG_CONFIG_HOME/opencode/skill"),
            at("~/.claude/skills"),
            at("~/.agents/skills"),
        ],
        preset: Some(Preset {
            name: "opencode",
            directories: &[".opencode/skills", ".opencode/skill", "~/.config/opencode/skills"],
        }),
        clash: Clash::Random,
        facts: &[
            loads(OPENCODE, &[AtRoot, Deeper(1), FolderLink, NAME, NameOver(64), FOLDER]),
            loads(OPENCODE, &[DescriptionOver(1024), MetadataNested, NotForModels, NotForPeople]),
            loads(OPENCODE_MARKDOWN, &[NotYaml]),
            hides(OPENCODE, &[DescriptionMissing]),
            misses(OPENCODE, &[FileName]),
        ],
        protected: &[".opencode"],
        mcp: Some(McpSettings {
            project: &["opencode.json", "opencode.jsonc"],
            servers: &["mcp"],
            newer: Some(&["mcp", "servers"]),
            shape: ServerShape::Joined,
            ..json_settings(
                &[
                    "$XDG_CONFIG_HOME/opencode/opencode.json",
                    "$XDG_CONFIG_HOME/opencode/opencode.jsonc",
                ],
                OPENCODE_MCP,
            )
        }),
        ..plain(OPENCODE)
    },
    Client {
        name: "goose",
        label: "goose",
        markers: &["$XDG_CONFIG_HOME/goose", ".goose"],
        spots: &[
            at(".agents/skills"),
            at(".goose/skills"),
            at(".claude/skills"),
            at("~/.agents/skills"),
            at("$XDG_CONFIG_HOME/goose/skills"),
            at("~/.claude/skills"),
            at("~/.config/agents/skills"),
        ],
        preset: Some(Preset {
            name: "goose",
            directories: &[".goose/skills", "~/.config/goose/skills"],
        }),
        clash: Clash::First,
        facts: &[
            loads(GOOSE, &[AtRoot, Deeper(1), FolderLink, FileLink, NameOver(64), FOLDER]),
            loads(GOOSE, &[DescriptionMissing, DescriptionOver(1024), MetadataNested]),
            loads(GOOSE, &[NotForModels, NotForPeople]),
            loads(GOOSE_SOURCES, &[ByteOrderMark, Delimiters]),
            cuts(GOOSE_SOURCES, &[DashesInside]),
            refuses(GOOSE_SOURCES, &[NoFrontmatter, NotYaml]),
            refuses(GOOSE, &[NotUtf8, NameMissing, NameForm(Form::NoSlash)]),
            misses(GOOSE, &[FileName]),
        ],
        mcp: Some(McpSettings {
            format: SettingsFormat::Yaml,
            servers: &["extensions"],
            shape: ServerShape::Named,
            ..json_settings(&["$XDG_CONFIG_HOME/goose/config.yaml"], GOOSE_MCP)
        }),
        ..plain(GOOSE)
    },
    Client {
        name: "openclaw",
        label: "OpenClaw",
        markers: &["$OPENCLAW_STATE_DIR"],
        programs: &["openclaw"],
        spots: &[
            at("skills"),
            at(".agents/skills"),
            at("~/.agents/skills"),
            at("$OPENCLAW_STATE_DIR/skills"),
        ],
        preset: Some(Preset { name: "openclaw", directories: &["skills", "~/.openclaw/skills"] }),
        clash: Clash::First,
        facts: &[
            loads(OPENCLAW, &[NotYaml, MetadataNested, NameMissing, NAME, NameOver(64), FOLDER]),
            loads(OPENCLAW, &[FolderLink]),
            loads(OPENCLAW_LOADER, &[AtRoot, DescriptionOver(1024)]),
            hides(OPENCLAW, &[NotForModels, NotForPeople]),
            refuses(OPENCLAW_LOADER, &[FileLink, DescriptionMissing]),
            misses(OPENCLAW, &[Deeper(6), ProjectLink]),
            misses(OPENCLAW_LOADER, &[FileName]),
        ],
        ..plain(OPENCLAW)
    },
    Client {
        name: "pi",
        label: "pi",
        markers: &["~/.pi/agent", ".pi"],
        spots: &[
            at(".pi/skills"),
            up(".agents/skills"),
            at("~/.pi/agent/skills"),
            at("~/.agents/skills"),
        ],
        preset: Some(Preset { name: "pi", directories: &[".pi/skills", "~/.pi/agent/skills"] }),
        facts: &[
            loads(PI, &[Deeper(1), FolderLink, FileLink, NameMissing, NAME, NameOver(64), FOLDER]),
            loads(PI, &[DescriptionOver(1024), MetadataNested, NotForPeople]),
            hides(PI, &[NotForModels]),
            refuses(PI, &[NoFrontmatter, NotYaml, DescriptionMissing]),
            misses(PI, &[FileName]),
        ],
        ..plain(PI)
    },
    Client {
        name: "deepagents",
        label: "Deep Agents CLI",
        markers: &["~/.deepagents", ".deepagents"],
        programs: &["deepagents"],
        spots: &[
            at(".claude/skills"),
            at("~/.claude/skills"),
            at(".agents/skills"),
            at(".deepagents/skills"),
            at("~/.agents/skills"),
            at("~/.deepagents/agent/skills"),
        ],
        preset: Some(Preset {
            name: "deepagents",
            directories: &[".deepagents/skills", "~/.deepagents/agent/skills"],
        }),
        clash: Clash::First,
        facts: &[
            loads(DEEPAGENTS, &[DuplicateKey, NAME, NameOver(64), FOLDER]),
            loads(DEEPAGENTS, &[MetadataNested, NotForModels, NotForPeople]),
            cuts(DEEPAGENTS, &[DescriptionOver(1024)]),
            refuses(DEEPAGENTS, &[FileOver(10 * 1024 * 1024), NotUtf8, NoFrontmatter, NotYaml]),
            refuses(DEEPAGENTS, &[ByteOrderMark, NameMissing, DescriptionMissing]),
            misses(DEEPAGENTS, &[AtRoot, Deeper(1), FileName]),
        ],
        ..plain(DEEPAGENTS_CLI)
    },
    Client {
        name: "cline",
        label: "Cline",
        markers: &["~/.cline", ".cline", ".clinerules"],
        programs: &["cline"],
        spots: &[
            at("~/.cline/skills"),
            at(".claude/skills"),
            at(".cline/skills"),
            at(".clinerules/skills"),
        ],
        preset: Some(Preset {
            name: "cline",
            directories: &[".cline/skills", ".clinerules/skills", "~/.cline/skills"],
        }),
        clash: Clash::First,
        facts: &[
            loads(CLINE, &[FolderLink, FileLink, NAME, NameOver(64), DescriptionOver(1024)]),
            loads(CLINE, &[MetadataNested, NotForModels, NotForPeople]),
            refuses(CLINE, &[ByteOrderMark, NoFrontmatter, Delimiters, NotYaml, DuplicateKey]),
            refuses(CLINE, &[NameMissing, FOLDER, DescriptionMissing]),
            misses(CLINE, &[AtRoot, Deeper(1), FileName]),
        ],
        protected: &[".cline", ".clinerules"],
        mcp: Some(json_settings(&["~/.cline/data/settings/cline_mcp_settings.json"], CLINE_MCP)),
        ..plain(CLINE)
    },
    Client {
        name: "agent-framework",
        label: "Microsoft Agent Framework",
        facts: &[
            loads(AGENT_FRAMEWORK, &[ByteOrderMark, NotYaml, DuplicateKey, MetadataNested]),
            loads(AGENT_FRAMEWORK, &[NotForModels, NotForPeople]),
            refuses(AGENT_FRAMEWORK, &[NoFrontmatter, NameMissing, NAME, NameOver(64), FOLDER]),
            refuses(AGENT_FRAMEWORK, &[DescriptionMissing, DescriptionOver(1024)]),
            misses(AGENT_FRAMEWORK, &[FolderLink, FileLink, FileName]),
        ],
        ..plain(AGENT_FRAMEWORK)
    },
    Client {
        name: "adk",
        label: "Google ADK",
        facts: &[
            loads(ADK, &[NotForModels, NotForPeople]),
            refuses(ADK, &[NoFrontmatter, NotYaml, NameMissing, NAME, FOLDER]),
            refuses(ADK, &[DescriptionMissing, DescriptionOver(1024)]),
        ],
        ..plain(ADK)
    },
    Client { name: "spring-ai", label: "Spring AI", ..plain(SPRING_AI) },
    Client {
        name: "crush",
        label: "Crush",
        markers: &["$XDG_CONFIG_HOME/crush", ".crush"],
        programs: &["crush"],
        spots: &[
            up(".agents/skills"),
            up(".crush/skills"),
            up(".claude/skills"),
            up(".cursor/skills"),
            at("$XDG_CONFIG_HOME/crush/skills"),
            at("$XDG_CONFIG_HOME/agents/skills"),
            at("~/.agents/skills"),
            at("~/.claude/skills"),
        ],
        facts: &[
            loads(CRUSH, &[Deeper(1), FolderLink, ByteOrderMark, Delimiters, NotForPeople]),
            hides(CRUSH, &[NotForModels]),
            refuses(CRUSH, &[NoFrontmatter, NotYaml, DuplicateKey, MetadataNested]),
            refuses(CRUSH, &[NameMissing, NameForm(Form::AnyCase), NameOver(64)]),
            refuses(CRUSH, &[NameNotFolder(Letters::AnyCase)]),
            refuses(CRUSH, &[DescriptionMissing, DescriptionOver(1024)]),
            misses(CRUSH, &[FileName]),
        ],
        ..plain(CRUSH_CONFIG)
    },
    Client {
        name: "hermes",
        label: "Hermes Agent",
        markers: &["$HERMES_HOME", ".hermes"],
        spots: &[at(".hermes/skills"), at(".agents/skills"), at("$HERMES_HOME/skills")],
        clash: Clash::First,
        facts: &[asks(HERMES, &[InProject])],
        ..plain(HERMES)
    },
    Client {
        name: "kilo",
        label: "Kilo Code",
        markers: &["~/.kilo", "~/.kilocode", ".kilo", ".kilocode"],
        programs: &["kilo", "kilocode"],
        spots: &[
            up(".kilo/skills"),
            up(".kilocode/skills"),
            at("~/.kilo/skills"),
            up(".agents/skills"),
            up(".claude/skills"),
            at("~/.agents/skills"),
            at("~/.claude/skills"),
        ],
        clash: Clash::First,
        facts: &[
            loads(KILO, &[AtRoot, Deeper(1), FolderLink, NAME, NameOver(64), FOLDER]),
            loads(KILO, &[DescriptionOver(1024), MetadataNested, NotForModels, NotForPeople]),
            hides(KILO, &[DescriptionMissing]),
            refuses(KILO, &[NameMissing]),
            misses(KILO, &[FileName]),
        ],
        protected: &[".kilo", ".kilocode"],
        mcp: Some(McpSettings {
            project: &[".kilo/kilo.jsonc", ".kilo/kilo.json", "kilo.jsonc", "kilo.json"],
            servers: &["mcp"],
            shape: ServerShape::Joined,
            ..json_settings(
                &["$XDG_CONFIG_HOME/kilo/kilo.jsonc", "$XDG_CONFIG_HOME/kilo/kilo.json"],
                KILO_MCP,
            )
        }),
        ..plain(KILO)
    },
    Client {
        name: "kimi",
        label: "Kimi CLI",
        markers: &["~/.kimi", ".kimi"],
        programs: &["kimi"],
        spots: &[
            at(".kimi/skills"),
            at(".claude/skills"),
            at(".codex/skills"),
            at(".agents/skills"),
            at("~/.kimi/skills"),
            at("~/.claude/skills"),
            at("~/.codex/skills"),
            at("~/.config/agents/skills"),
            at("~/.agents/skills"),
        ],
        clash: Clash::First,
        facts: &[
            loads(KIMI, &[FolderLink, FileLink, NameMissing, NAME, NameOver(64), FOLDER]),
            loads(KIMI, &[NoFrontmatter, DescriptionMissing, DescriptionOver(1024)]),
            loads(KIMI, &[MetadataNested, NotForModels, NotForPeople]),
            refuses(KIMI, &[NotUtf8, NotYaml]),
            misses(KIMI, &[AtRoot, Deeper(1), FileName]),
        ],
        ..plain(KIMI_DOCS)
    },
    Client {
        name: "kimi-code",
        label: "Kimi Code",
        markers: &["$KIMI_CODE_HOME", ".kimi-code"],
        spots: &[
            up(".kimi-code/skills"),
            up(".agents/skills"),
            at("$KIMI_CODE_HOME/skills"),
            at("~/.agents/skills"),
        ],
        clash: Clash::First,
        facts: &[
            loads(KIMI_CODE_SCAN, &[Deeper(1), FolderLink, FileLink]),
            hides(KIMI_CODE, &[NotForModels]),
            refuses(KIMI_CODE, &[NoFrontmatter, NameMissing, DescriptionMissing]),
            misses(KIMI_CODE_SCAN, &[AtRoot, FileName]),
        ],
        ..plain(KIMI_CODE)
    },
    Client {
        name: "kiro",
        label: "Kiro",
        markers: &["~/.kiro", ".kiro"],
        programs: &["kiro", "kiro-cli"],
        spots: &[at(".kiro/skills"), at("~/.kiro/skills")],
        clash: Clash::First,
        protected: &[".kiro"],
        mcp: Some(McpSettings {
            project: &[".kiro/settings/mcp.json"],
            ..json_settings(&["~/.kiro/settings/mcp.json"], KIRO_MCP)
        }),
        ..plain(KIRO)
    },
    Client {
        name: "openhands",
        label: "OpenHands",
        markers: &["~/.openhands", ".openhands"],
        programs: &["openhands"],
        spots: &[
            at(".agents/skills"),
            at(".openhands/skills"),
            at(".openhands/microagents"),
            at("~/.agents/skills"),
            at("~/.openhands/skills"),
            at("~/.openhands/microagents"),
        ],
        preset: Some(Preset {
            name: "openhands",
            directories: &[".openhands/skills", "~/.openhands/skills"],
        }),
        clash: Clash::First,
        facts: &[
            loads(OPENHANDS_FIND, &[FolderLink, FileLink, FileName]),
            loads(OPENHANDS, &[NoFrontmatter, DuplicateKey, NameMissing, DescriptionMissing]),
            loads(OPENHANDS, &[MetadataNested, NotForPeople]),
            cuts(OPENHANDS, &[DescriptionOver(1024)]),
            hides(OPENHANDS, &[NotForModels]),
            refuses(OPENHANDS, &[NotUtf8, NotYaml]),
            refuses(OPENHANDS_FIND, &[NAME, NameOver(64), FOLDER]),
            misses(OPENHANDS_FIND, &[AtRoot, Deeper(1)]),
        ],
        ..plain(OPENHANDS)
    },
    Client {
        name: "qwen",
        label: "Qwen Code",
        markers: &["$QWEN_HOME", ".qwen"],
        programs: &["qwen"],
        spots: &[
            at(".qwen/skills"),
            at(".agents/skills"),
            at("$QWEN_HOME/skills"),
            at("~/.agents/skills"),
        ],
        clash: Clash::First,
        facts: &[
            loads(QWEN, &[FolderLink, FileLink, ByteOrderMark, FOLDER]),
            loads(QWEN, &[DescriptionOver(1024), MetadataNested]),
            hides(QWEN, &[NotForModels, NotForPeople]),
            refuses(QWEN, &[NoFrontmatter, Delimiters, NameMissing, DescriptionMissing]),
            misses(QWEN, &[AtRoot, Deeper(1), FileName]),
        ],
        protected: &[".qwen"],
        mcp: Some(McpSettings {
            project: &[".qwen/settings.json"],
            ..json_settings(&["~/.qwen/settings.json"], QWEN_MCP)
        }),
        ..plain(QWEN_MANAGER)
    },
    Client {
        name: "roo",
        label: "Roo Code",
        markers: &["~/.roo", ".roo"],
        spots: &[
            at(".roo/skills"),
            at(".agents/skills"),
            at("~/.roo/skills"),
            at("~/.agents/skills"),
        ],
        preset: Some(Preset { name: "roo", directories: &[".roo/skills", "~/.roo/skills"] }),
        clash: Clash::First,
        facts: &[
            loads(ROO, &[FolderLink, FileLink, MetadataNested, NotForModels, NotForPeople]),
            refuses(ROO, &[NoFrontmatter, NotYaml, DuplicateKey, NameMissing, NAME, NameOver(64)]),
            refuses(ROO, &[FOLDER, DescriptionMissing, DescriptionOver(1024)]),
            misses(ROO, &[AtRoot, Deeper(1), FileName]),
        ],
        protected: &[".roo"],
        mcp: Some(McpSettings { project: &[".roo/mcp.json"], ..json_settings(&[], ROO_MCP) }),
        ..plain(ROO)
    },
    Client {
        name: "vibe",
        label: "Mistral Vibe",
        markers: &["$VIBE_HOME", ".vibe"],
        spots: &[at(".vibe/skills"), at("$VIBE_HOME/skills")],
        clash: Clash::First,
        facts: &[
            loads(VIBE, &[FolderLink, FileLink, FOLDER]),
            loads(VIBE_MODELS, &[MetadataNested, NotForModels]),
            asks(VIBE_TRUST, &[InProject]),
            hides(VIBE_MODELS, &[NotForPeople]),
            refuses(VIBE, &[NoFrontmatter, NotYaml]),
            refuses(VIBE_MODELS, &[NameMissing, NameForm(Form::Dotted), NameOver(64)]),
            refuses(VIBE_MODELS, &[DescriptionMissing, DescriptionOver(1024)]),
            misses(VIBE, &[AtRoot, Deeper(1), FileName]),
        ],
        ..plain(VIBE)
    },
    Client {
        name: "windsurf",
        label: "Windsurf",
        markers: &["~/.codeium/windsurf", ".windsurf"],
        programs: &["windsurf"],
        spots: &[
            at(".windsurf/skills"),
            at(".agents/skills"),
            at("~/.codeium/windsurf/skills"),
            at("~/.agents/skills"),
        ],
        preset: Some(Preset {
            name: "windsurf",
            directories: &[".windsurf/skills", "~/.codeium/windsurf/skills"],
        }),
        protected: &[".windsurf"],
        mcp: Some(json_settings(&["~/.codeium/windsurf/mcp_config.json"], WINDSURF_MCP)),
        ..plain(WINDSURF)
    },
    Client {
        name: "droid",
        label: "Factory Droid",
        markers: &["~/.factory", ".factory"],
        programs: &["droid"],
        spots: &[
            at(".factory/skills"),
            at(".agents/skills"),
            at("~/.factory/skills"),
            at("~/.agents/skills"),
        ],
        facts: &[misses(DROID, &[FileName]), hides(DROID, &[NotForModels, NotForPeople])],
        protected: &[".factory"],
        mcp: Some(McpSettings {
            project: &[".factory/mcp.json"],
            shape: ServerShape::Typed,
            ..json_settings(&["~/.factory/mcp.json"], DROID_MCP)
        }),
        ..plain(SKILLS_CLI)
    },
    Client {
        name: "warp",
        label: "Warp",
        markers: &["~/.warp", ".warp"],
        programs: &["warp-terminal"],
        spots: &[
            up(".agents/skills"),
            up(".warp/skills"),
            up(".claude/skills"),
            up(".codex/skills"),
            up(".cursor/skills"),
            up(".gemini/skills"),
            up(".copilot/skills"),
            up(".factory/skills"),
            up(".github/skills"),
            up(".opencode/skills"),
            at("~/.agents/skills"),
            at("~/.warp/skills"),
            at("~/.claude/skills"),
            at("~/.codex/skills"),
            at("~/.cursor/skills"),
            at("~/.gemini/skills"),
            at("~/.copilot/skills"),
            at("~/.factory/skills"),
            at("~/.github/skills"),
            at("~/.opencode/skills"),
        ],
        clash: Clash::Both,
        facts: &[
            loads(WARP_FIND, &[FolderLink, FileLink]),
            loads(WARP, &[NoFrontmatter, NameMissing, NAME, NameOver(64), FOLDER]),
            loads(WARP, &[DescriptionMissing, NotForModels, NotForPeople]),
            cuts(WARP, &[DescriptionOver(512)]),
            refuses(WARP, &[NotUtf8]),
            misses(WARP_FIND, &[AtRoot, Deeper(1), FileName]),
        ],
        mcp: Some(McpSettings {
            project: &[".warp/.mcp.json"],
            ..json_settings(&["~/.warp/.mcp.json"], WARP_MCP)
        }),
        ..plain(WARP_DOCS)
    },
    Client {
        name: "zed",
        label: "Zed",
        markers: &["$XDG_CONFIG_HOME/zed", ".zed"],
        programs: &["zed", "zeditor"],
        spots: &[at(".agents/skills"), at("~/.agents/skills")],
        clash: Clash::First,
        room: Some(50_000),
        facts: &[
            loads(ZED, &[FolderLink]),
            asks(ZED, &[InProject]),
            hides(ZED, &[NotForModels]),
            refuses(ZED, &[NAME, NameOver(64)]),
            misses(ZED, &[Deeper(1)]),
        ],
        protected: &[".zed"],
        mcp: Some(McpSettings {
            servers: &["context_servers"],
            ..json_settings(&["$XDG_CONFIG_HOME/zed/settings.json"], ZED_MCP)
        }),
        ..plain(ZED)
    },
    Client {
        name: "amp",
        label: "Amp",
        markers: &["$XDG_CONFIG_HOME/amp"],
        programs: &["amp"],
        spots: &[
            at(".agents/skills"),
            at(".claude/skills"),
            at("~/.agents/skills"),
            at("$XDG_CONFIG_HOME/agents/skills"),
            at("$XDG_CONFIG_HOME/amp/skills"),
            at("~/.claude/skills"),
        ],
        mcp: Some(McpSettings {
            project: &[".amp/settings.json", ".amp/settings.jsonc"],
            servers: &["amp.mcpServers"],
            ..json_settings(
                &["~/.config/amp/settings.json", "~/.config/amp/settings.jsonc"],
                AMP_MCP,
            )
        }),
        ..plain(AGENTX)
    },
    Client {
        name: "augment",
        label: "Augment",
        markers: &["~/.augment", ".augment"],
        programs: &["auggie"],
        spots: &[
            at(".augment/skills"),
            at(".claude/skills"),
            at(".agents/skills"),
            at("~/.augment/skills"),
            at("~/.claude/skills"),
            at("~/.agents/skills"),
        ],
        protected: &[".augment", ".augment-guidelines"],
        ..plain(AUGMENT)
    },
    Client {
        name: "continue",
        label: "Continue",
        markers: &["~/.continue", ".continue"],
        spots: &[at(".continue/skills"), at(".claude/skills"), at("~/.continue/skills")],
        facts: &[refuses(CONTINUE, &[NoFrontmatter, NameMissing, DescriptionMissing])],
        protected: &[".continue"],
        ..plain(CONTINUE)
    },
    Client {
        name: "rovodev",
        label: "Rovo Dev",
        markers: &["~/.rovodev", ".rovodev"],
        spots: &[
            at("~/.rovodev/skills"),
            at("~/.agents/skills"),
            at(".rovodev/skills"),
            at(".agents/skills"),
        ],
        ..plain(ROVODEV)
    },
    simple_client(
        "adal",
        "AdaL",
        &[at(".adal/skills"), at("~/.adal/skills")],
        &[".adal", "~/.adal"],
    ),
    simple_client(
        "aider-desk",
        "AiderDesk",
        &[at(".aider-desk/skills"), at("~/.aider-desk/skills")],
        &[".aider-desk", "~/.aider-desk"],
    ),
    simple_client(
        "antigravity",
        "Antigravity",
        &[at(".agents/skills"), at("~/.gemini/antigravity/skills")],
        &["~/.gemini/antigravity"],
    ),
    simple_client(
        "antigravity-cli",
        "Antigravity CLI",
        &[at(".agents/skills"), at("~/.gemini/antigravity-cli/skills")],
        &["~/.gemini/antigravity-cli"],
    ),
    simple_client("bob", "IBM Bob", &[at(".bob/skills"), at("~/.bob/skills")], &[".bob", "~/.bob"]),
    simple_client(
        "codebuddy",
        "CodeBuddy",
        &[at(".codebuddy/skills"), at("~/.codebuddy/skills")],
        &[".codebuddy", "~/.codebuddy"],
    ),
    simple_client(
        "command-code",
        "Command Code",
        &[at(".commandcode/skills"), at("~/.commandcode/skills")],
        &[".commandcode", "~/.commandcode"],
    ),
    simple_client(
        "cortex",
        "Cortex Code",
        &[at(".cortex/skills"), at("~/.snowflake/cortex/skills")],
        &[".cortex", "~/.snowflake/cortex"],
    ),
    simple_client(
        "devin",
        "Devin for Terminal",
        &[at(".devin/skills"), at("$XDG_CONFIG_HOME/devin/skills")],
        &[".devin", "$XDG_CONFIG_HOME/devin"],
    ),
    simple_client(
        "firebender",
        "Firebender",
        &[at(".agents/skills"), at("~/.firebender/skills")],
        &["~/.firebender"],
    ),
    simple_client(
        "forgecode",
        "ForgeCode",
        &[at(".forge/skills"), at("~/.forge/skills")],
        &[".forge", "~/.forge"],
    ),
    simple_client(
        "grok",
        "Grok Build",
        &[at(".grok/skills"), at("~/.grok/skills")],
        &[".grok", "~/.grok"],
    ),
    simple_client(
        "iflow",
        "iFlow CLI",
        &[at(".iflow/skills"), at("~/.iflow/skills")],
        &[".iflow", "~/.iflow"],
    ),
    Client {
        name: "junie",
        label: "Junie",
        markers: &[".junie", "~/.junie"],
        spots: &[at(".junie/skills"), at("~/.junie/skills")],
        protected: &[".junie"],
        mcp: Some(McpSettings {
            project: &[".junie/mcp/mcp.json"],
            ..json_settings(&["~/.junie/mcp/mcp.json"], JUNIE_MCP)
        }),
        ..plain(SKILLS_CLI)
    },
    simple_client(
        "kode",
        "Kode",
        &[at(".kode/skills"), at("~/.kode/skills")],
        &[".kode", "~/.kode"],
    ),
    simple_client(
        "lingma",
        "Lingma",
        &[at(".lingma/skills"), at("~/.lingma/skills")],
        &[".lingma", "~/.lingma"],
    ),
    simple_client(
        "mcpjam",
        "MCPJam",
        &[at(".mcpjam/skills"), at("~/.mcpjam/skills")],
        &[".mcpjam", "~/.mcpjam"],
    ),
    simple_client(
        "minimax",
        "MiniMax Code",
        &[at(".minimax/skills"), at("~/.minimax/skills")],
        &[".minimax", "~/.minimax"],
    ),
    simple_client("mux", "Mux", &[at(".mux/skills"), at("~/.mux/skills")], &[".mux", "~/.mux"]),
    simple_client(
        "neovate",
        "Neovate",
        &[at(".neovate/skills"), at("~/.neovate/skills")],
        &[".neovate", "~/.neovate"],
    ),
    simple_client("ona", "Ona", &[at(".ona/skills"), at("~/.ona/skills")], &[".ona", "~/.ona"]),
    simple_client(
        "pochi",
        "Pochi",
        &[at(".pochi/skills"), at("~/.pochi/skills")],
        &[".pochi", "~/.pochi"],
    ),
    simple_client(
        "posit",
        "Posit Assistant",
        &[at(".posit/assistant/skills"), at("~/.posit/assistant/skills")],
        &[".posit", "~/.posit"],
    ),
    simple_client(
        "qoder",
        "Qoder",
        &[at(".qoder/skills"), at("~/.qoder/skills")],
        &[".qoder", "~/.qoder"],
    ),
    simple_client(
        "replit",
        "Replit",
        &[at(".agents/skills"), at("$XDG_CONFIG_HOME/agents/skills")],
        &[".replit"],
    ),
    simple_client(
        "tabnine",
        "Tabnine CLI",
        &[at(".tabnine/agent/skills"), at("~/.tabnine/agent/skills")],
        &[".tabnine", "~/.tabnine"],
    ),
    Client {
        name: "trae",
        label: "Trae",
        markers: &[".trae", "~/.trae"],
        spots: &[at(".trae/skills"), at("~/.trae/skills")],
        protected: &[".trae"],
        ..plain(SKILLS_CLI)
    },
    simple_client(
        "zcode",
        "ZCode",
        &[at(".zcode/skills"), at("~/.zcode/skills")],
        &[".zcode", "~/.zcode"],
    ),
    simple_client(
        "zencoder",
        "Zencoder",
        &[at(".zencoder/skills"), at("~/.zencoder/skills")],
        &[".zencoder", "~/.zencoder"],
    ),
];

/// Clients that start MCP servers and load no skills by themselves.
static WITHOUT_SKILLS: &[Client] = &[
    Client {
        name: "claude-desktop",
        label: "Claude Desktop",
        mcp: Some(McpSettings {
            mac: Some(&["~/Library/Application Support/Claude/claude_desktop_config.json"]),
            ..json_settings(&[], CLAUDE_DESKTOP_MCP)
        }),
        ..plain(CLAUDE_DESKTOP_MCP)
    },
    Client {
        name: "lmstudio",
        label: "LM Studio",
        mcp: Some(json_settings(
            &["~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"],
            LMSTUDIO_MCP,
        )),
        ..plain(LMSTUDIO_MCP)
    },
];

/// Returns the clients that have settings for MCP servers, by name.
pub fn mcp_clients() -> Vec<(&'static Client, &'static McpSettings)> {
    let all = CLIENTS.iter().chain(WITHOUT_SKILLS);
    let mut clients: Vec<_> = all.filter_map(|it| Some((it, it.mcp.as_ref()?))).collect();
    clients.sort_by_key(|it| it.0.name);
    clients
}

/// Returns settings as most clients have them: JSON with `mcpServers`.
const fn json_settings(user: &'static [&'static str], source: &'static Citation) -> McpSettings {
    McpSettings {
        user,
        mac: None,
        project: &[],
        format: SettingsFormat::Json,
        servers: &["mcpServers"],
        newer: None,
        shape: ServerShape::Plain,
        source,
    }
}

/// A client of which only the directories are known, from the list of `npx skills`.
const fn simple_client(
    name: &'static str,
    label: &'static str,
    spots: &'static [Spot],
    markers: &'static [&'static str],
) -> Client {
    Client { name, label, spots, markers, ..plain(SKILLS_CLI) }
}

/// Returns a directory of the user or the system, or of the working directory of a client.
const fn at(path: &'static str) -> Spot {
    Spot { path, upwards: false }
}

/// Returns a directory of the working directory, or of a parent folder in its repository.
const fn up(path: &'static str) -> Spot {
    Spot { path, upwards: true }
}

const fn loads(source: &'static Citation, symptoms: &'static [Symptom]) -> Fact {
    Fact { verdict: Verdict::Loads, symptoms, source }
}

const fn asks(source: &'static Citation, symptoms: &'static [Symptom]) -> Fact {
    Fact { verdict: Verdict::Asks, symptoms, source }
}

const fn cuts(source: &'static Citation, symptoms: &'static [Symptom]) -> Fact {
    Fact { verdict: Verdict::Cut, symptoms, source }
}

const fn hides(source: &'static Citation, symptoms: &'static [Symptom]) -> Fact {
    Fact { verdict: Verdict::Hidden, symptoms, source }
}

const fn doubts(source: &'static Citation, symptoms: &'static [Symptom]) -> Fact {
    Fact { verdict: Verdict::Unknown, symptoms, source }
}

const fn refuses(source: &'static Citation, symptoms: &'static [Symptom]) -> Fact {
    Fact { verdict: Verdict::Refused, symptoms, source }
}

const fn misses(source: &'static Citation, symptoms: &'static [Symptom]) -> Fact {
    Fact { verdict: Verdict::Unseen, symptoms, source }
}

/// Declares citations: the source, its address, and the date when it was checked.
macro_rules! citations {
    ($($name:ident $checked:literal $url:literal;)*) => {
        $(const $name: &Citation = &Citation { url: $url, checked: $checked };)*
    };
}

citations! {
    ADK "2026-08-22" "https://github.com/google/adk-python";
    AGENTX "2026-11-15" "https://github.com/sageox/agentx/blob/main/skills/roots.go";
    AGENT_FRAMEWORK "2026-11-15" "https://github.com/microsoft/agent-framework/blob/main/python/packages/core/agent_framework/_skills.py";
    AMP_MCP "2026-11-15" "https://ampcode.com/manual#core-settings";
    AUGMENT "2026-11-15" "https://docs.augmentcode.com/cli/skills";
    CLAUDE_CODE "2026-08-22" "https://code.claude.com/docs/en/skills";
    CLAUDE_CODE_MCP "2026-11-15" "https://code.claude.com/docs/en/mcp";
    CLAUDE_DESKTOP_MCP "2026-11-15" "https://modelcontextprotocol.io/quickstart/user";
    CLINE "2026-11-15" "https://github.com/cline/cline/blob/main/src/core/context/instructions/user-instructions/skills.ts";
    CLINE_MCP "2026-11-15" "https://docs.cline.bot/getting-started/config";
    CODEX "2026-08-22" "https://github.com/openai/codex/blob/main/codex-rs/core-skills/src/loader.rs";
    CODEX_MCP "2026-11-15" "https://developers.openai.com/codex/mcp";
    CONTINUE "2026-11-15" "https://github.com/continuedev/continue/blob/main/extensions/cli/src/util/loadMarkdownSkills.ts";
    COPILOT "2026-11-15" "https://docs.github.com/en/copilot/how-tos/copilot-on-github/customize-copilot/customize-cloud-agent/add-skills";
    COPILOT_MCP "2026-11-15" "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers";
    COPILOT_REFERENCE "2026-11-15" "https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-command-reference#skills-reference";
    CRUSH "2026-11-15" "https://github.com/charmbracelet/crush/blob/main/internal/skills/skills.go";
    CRUSH_CONFIG "2026-11-15" "https://github.com/charmbracelet/crush/blob/main/internal/config/load.go";
    CURSOR "2026-08-22" "https://cursor.com/docs/context/skills";
    CURSOR_MCP "2026-11-15" "https://cursor.com/docs/mcp";
    DEEPAGENTS "2026-11-15" "https://github.com/langchain-ai/deepagents/blob/main/libs/deepagents/deepagents/middleware/skills.py";
    DEEPAGENTS_CLI "2026-11-15" "https://reference.langchain.com/python/deepagents-code/skills/load/list_skills";
    DROID "2026-11-15" "https://docs.factory.ai/harness/skills";
    DROID_MCP "2026-11-15" "https://docs.factory.ai/cli/configuration/mcp";
    GEMINI "2026-11-15" "https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/skills/skillLoader.ts";
    GEMINI_DOCS "2026-11-15" "https://geminicli.com/docs/cli/using-agent-skills";
    GEMINI_MANAGER "2026-11-15" "https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/skills/skillManager.ts";
    GEMINI_MCP "2026-11-15" "https://geminicli.com/docs/tools/mcp-server";
    GOOSE "2026-11-15" "https://github.com/block/goose/blob/main/crates/goose/src/skills/mod.rs";
    GOOSE_MCP "2026-11-15" "https://block.github.io/goose/docs/guides/config-files";
    GOOSE_SOURCES "2026-11-15" "https://github.com/block/goose/blob/main/crates/goose/src/sources.rs";
    HERMES "2026-11-15" "https://github.com/NousResearch/hermes-agent/blob/main/agent/skill_utils.py";
    JUNIE_MCP "2026-11-15" "https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html";
    KILO "2026-11-15" "https://github.com/Kilo-Org/kilocode/blob/main/packages/opencode/src/skill/index.ts";
    KILO_MCP "2026-11-15" "https://kilo.ai/docs/automate/mcp/using-in-kilo-code";
    KIMI "2026-11-15" "https://github.com/MoonshotAI/kimi-cli/blob/main/src/kimi_cli/skill/__init__.py";
    KIMI_CODE "2026-11-15" "https://moonshotai.github.io/kimi-code/en/customization/skills";
    KIMI_CODE_SCAN "2026-11-15" "https://github.com/MoonshotAI/kimi-code/blob/main/packages/agent-core/src/skill/scanner.ts";
    KIMI_DOCS "2026-11-15" "https://moonshotai.github.io/kimi-cli/zh/customization/skills.md";
    KIRO "2026-11-15" "https://kiro.dev/docs/skills";
    KIRO_MCP "2026-11-15" "https://kiro.dev/docs/mcp/configuration";
    LMSTUDIO_MCP "2026-11-15" "https://lmstudio.ai/docs/app/mcp";
    OPENCLAW "2026-11-15" "https://docs.openclaw.ai/tools/skills";
    OPENCLAW_LOADER "2026-11-15" "https://github.com/openclaw/openclaw/blob/main/src/agents/skills/local-loader.ts";
    OPENCODE "2026-08-19" "https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/skill/index.ts";
    OPENCODE_MARKDOWN "2026-11-15" "https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/config/markdown.ts";
    OPENCODE_MCP "2026-11-15" "https://opencode.ai/docs/mcp-servers";
    OPENHANDS "2026-11-15" "https://github.com/OpenHands/software-agent-sdk/blob/main/openhands-sdk/openhands/sdk/skills/skill.py";
    OPENHANDS_FIND "2026-11-15" "https://github.com/OpenHands/software-agent-sdk/blob/main/openhands-sdk/openhands/sdk/skills/utils.py";
    PI "2026-11-15" "https://github.com/badlogic/pi-mono/blob/main/packages/coding-agent/src/core/skills.ts";
    QWEN "2026-11-15" "https://github.com/QwenLM/qwen-code/blob/main/packages/core/src/skills/skill-load.ts";
    QWEN_MANAGER "2026-11-15" "https://github.com/QwenLM/qwen-code/blob/main/packages/core/src/skills/skill-manager.ts";
    QWEN_MCP "2026-11-15" "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/";
    ROO "2026-11-15" "https://github.com/RooCodeInc/Roo-Code/blob/main/src/services/skills/SkillsManager.ts";
    ROO_MCP "2026-11-15" "https://docs.roocode.com/features/mcp/using-mcp-in-roo";
    ROVODEV "2026-11-15" "https://support.atlassian.com/rovo/docs/extend-rovo-dev-cli-with-agent-skills";
    SKILLS_CLI "2026-11-15" "https://github.com/vercel-labs/skills/blob/main/README.md#supported-agents";
    SPRING_AI "2026-08-22" "https://github.com/spring-ai-community/spring-ai-agent-utils";
    VIBE "2026-11-15" "https://github.com/mistralai/mistral-vibe/blob/main/vibe/core/skills/manager.py";
    VIBE_MODELS "2026-11-15" "https://github.com/mistralai/mistral-vibe/blob/main/vibe/core/skills/models.py";
    VIBE_TRUST "2026-11-15" "https://github.com/mistralai/mistral-vibe/blob/main/vibe/core/paths/config_paths.py";
    VSCODE "2026-11-15" "https://github.com/microsoft/vscode/blob/main/src/vs/workbench/contrib/chat/common/promptSyntax/service/promptsServiceImpl.ts";
    VSCODE_LOCATIONS "2026-11-15" "https://github.com/microsoft/vscode/blob/main/src/vs/workbench/contrib/chat/common/promptSyntax/config/promptFileLocations.ts";
    VSCODE_LOCATOR "2026-11-15" "https://github.com/microsoft/vscode/blob/main/src/vs/workbench/contrib/chat/common/promptSyntax/utils/promptFilesLocator.ts";
    VSCODE_MCP "2026-11-15" "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration";
    WARP "2026-11-15" "https://github.com/warpdotdev/warp/blob/master/crates/ai/src/skills/parse_skill.rs";
    WARP_DOCS "2026-11-15" "https://docs.warp.dev/agent-platform/capabilities/skills";
    WARP_FIND "2026-11-15" "https://github.com/warpdotdev/warp/blob/master/crates/ai/src/skills/read_skills.rs";
    WARP_MCP "2026-11-15" "https://docs.warp.dev/agents/capabilities/mcp";
    WINDSURF "2026-11-15" "https://docs.windsurf.com/windsurf/cascade/skills";
    WINDSURF_MCP "2026-11-15" "https://docs.windsurf.com/windsurf/cascade/mcp";
    ZED "2026-11-15" "https://zed.dev/docs/ai/skills";
    ZED_MCP "2026-11-15" "https://zed.dev/docs/ai/mcp";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{super::client::VARIABLES, *};

    #[test]
    fn every_client_has_a_name_of_its_own_and_says_where_that_is_known_from() {
        let all = || CLIENTS.iter().chain(WITHOUT_SKILLS);
        let names: BTreeSet<&str> = all().map(|it| it.name).collect();
        assert_eq!(names.len(), all().count());
        for client in all() {
            let facts = client.facts.iter().map(|it| it.source);
            let mcp = client.mcp.iter().map(|it| it.source);
            for source in facts.chain(mcp).chain([client.source]) {
                assert!(source.url.starts_with("https://"), "{}", client.name);
                assert_eq!(source.checked.len(), "2026-11-15".len(), "{}", client.name);
            }
        }
    }

    #[test]
    fn a_variable_in_a_path_has_a_usual_value() {
        let spots = CLIENTS.iter().flat_map(|it| it.spots).map(|it| it.path);
        let settings = mcp_clients().into_iter().flat_map(|it| it.1.user).copied();
        for path in spots.chain(settings).filter(|it| it.starts_with('$')) {
            let name = path[1..].split('/').next();
            assert!(VARIABLES.iter().any(|it| Some(it.0) == name), "{path}");
        }
    }

    #[test]
    fn a_preset_of_a_client_names_directories_that_the_client_looks_into() {
        let mut compared = 0;
        for client in CLIENTS {
            let usual: Vec<String> = client.spots.iter().map(Spot::usual).collect();
            for directory in client.preset.iter().flat_map(|it| it.directories) {
                assert!(usual.iter().any(|it| it == directory), "{} {directory}", client.name);
                compared += 1;
            }
        }
        assert!(compared > 20);
    }

    #[test]
    fn what_is_protected_is_written_in_lower_case() {
        for path in CLIENTS.iter().flat_map(Client::protected_files) {
            assert_eq!(path, path.to_ascii_lowercase());
        }
    }
}
