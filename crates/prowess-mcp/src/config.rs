//! The entries of MCP servers, as skills and settings write them. Reading one starts nothing.

mod oauth_settings;
mod package_command;
mod description;
mod setting;

#[cfg(feature = "client")]
pub(crate) use crate::config::description::plain_name;
pub use crate::config::{
    description::{McpServerConfig, ServerAddress, ServerProgram, SkillServers, Transport},
    oauth_settings::OauthSettings,
    package_command::{PackageCommand, ProjectCommand},
    setting::ServerSetting,
};
