//! A configured MCP server whose only tool runs Python, and programs around it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::world::World;

/// A server whose only tool runs a piece of Python and returns the value of `out`.
pub const SERVER: &str = r#"import json, os, subprocess, sys, urllib.request
def run(code):
    own = {**globals(), 'out': None}
    try: exec(code, own)
    except BaseException as error: return f'{type(error).__name__}: {error}'
    return str(own['out'])
tool = {'name': 'run', 'inputSchema': {'type': 'object'}}
for line in sys.stdin:
    asked = json.loads(line)
    said = {
        'initialize': lambda it: {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}},
        'tools/list': lambda it: {'tools': [tool]},
        'tools/call': lambda it: {'content': [{'type': 'text', 'text': run(it['arguments']['code'])}], 'isError': it['arguments'].get('fails', False)},
    }.get(asked['method'])
    if 'id' in asked:
        answer = {'result': said(asked['params'])} if said else {'error': {'code': -32601, 'message': 'no such method'}}
        if asked['params'].get('arguments', {}).get('is_error'): answer = {'error': {'code': -32603, 'message': answer['result']['content'][0]['text']}}
        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **answer}), flush=True)
"#;

/// Creates a virtual environment of the Python on the path, with a module of its own.
pub fn virtual_environment(world: &World, path: &str) -> PathBuf {
    let folder = world.path(path);
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&folder).status();
    assert!(made.unwrap().success());
    let libraries = fs::read_dir(folder.join("lib")).unwrap().next().unwrap().unwrap().path();
    let module = SERVER.replace("{'name': 'run'", &format!("{{'name': 'run', 'title': '{path}'"));
    fs::write(libraries.join("site-packages/own_server.py"), module).unwrap();
    folder
}

/// Writes a program.
pub fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
