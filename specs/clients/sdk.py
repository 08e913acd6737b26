"""A client on the official SDK for Python: the same as `tour.mjs` does."""

import asyncio
import json
import os
import pathlib
import sys
from typing import Any, Literal

sys.path.insert(0, os.environ["SITE"])
import httpx2
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import PromptsListChanged
from pydantic import TypeAdapter


class ListSkills(types.Request[types.RequestParams, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"
    params: types.RequestParams = types.RequestParams()


async def tour(client):
    """Uses all that there is, as a host does."""

    async def refusal(asked):
        try:
            await asked
        except MCPError as error:
            return error.error.code

    async def read(uri):
        return (await client.read_resource(uri)).contents[0]

    tools = (await client.list_tools()).tools
    found = await client.call_tool("find_skills", {"query": "release a version"})
    used = await client.call_tool("use_skill", {"name": "release"})
    file = await client.call_tool("read_skill_file", {"name": "release", "path": "notes.md"})
    wrong = await client.call_tool("use_skill", {"name": "nothing"})
    prompts = (await client.list_prompts()).prompts
    prompt = await client.get_prompt("release", {"where": "staging", "version": "2"})
    reference = types.PromptReference(type="ref/prompt", name="release")
    completed = await client.complete(reference, {"name": "where", "value": "s"})
    resources = (await client.list_resources()).resources
    templates = (await client.list_resource_templates()).resource_templates
    skills = await client.session.send_request(ListSkills(), TypeAdapter(dict[str, Any]))
    return {
        "server": client.server_info.name,
        "instructions": client.instructions,
        "tools": [it.name for it in tools],
        "found": found.structured_content,
        "used": used.content[0].text,
        "file": file.content[0].text,
        "wrong": wrong.is_error,
        "no_tool": await refusal(client.call_tool("fly", {})),
        "prompts": [it.name for it in prompts],
        "prompt": prompt.messages[0].content.text,
        "completed": completed.completion.values,
        "resources": [str(it.uri) for it in resources],
        "templates": [it.uri_template for it in templates],
        "text": (await read("skill://project/release/notes.md")).text,
        "blob": (await read("skill://project/release/icon.png")).blob,
        "no_resource": await refusal(read("skill://project/release/nothing.md")),
        "skills": [it["uri"] for it in skills["skills"]],
    }


async def watch(client, told, path):
    """Asks to be told of changes, writes a skill, and waits to be told."""

    def write():
        pathlib.Path(path).write_text("---\nname: tidy\ndescription: Tidies up.\n---\n")

    if client.protocol_version == "2026-07-28":
        async with client.listen(prompts_list_changed=True) as changes:
            write()
            async for change in changes:
                return {"changed": isinstance(change, PromptsListChanged)}
    write()
    return {"changed": await told}


async def main(action, revision, way, target, *rest):
    told = asyncio.get_running_loop().create_future()

    async def heard(message):
        if isinstance(message, types.PromptListChangedNotification) and not told.done():
            told.set_result(True)

    if way == "http":
        headers = {"Authorization": f"Bearer {rest[0]}"}
        server = streamable_http_client(target, http_client=httpx2.AsyncClient(headers=headers))
    else:
        server = stdio_client(StdioServerParameters(command=target, args=rest))
    mode = "auto" if revision == "2026-07-28" else "legacy"
    async with Client(server, mode=mode, message_handler=heard) as client:
        if client.protocol_version != revision:
            raise RuntimeError(f"they speak {client.protocol_version}")
        did = await (tour(client) if action == "tour" else watch(client, told, action))
        print(json.dumps(did))


asyncio.run(main(*sys.argv[1:]))
