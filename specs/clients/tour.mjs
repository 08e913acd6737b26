// What the clients on the official SDKs for TypeScript do with a server of skills.
import { writeFileSync } from 'node:fs';

const [action, revision, ...server] = process.argv.slice(2);

/** Has a client use the server that the command line names, and prints what it was told. */
export async function run(make) {
  const [way, target, ...rest] = server;
  const { client, connect, skills, changed } = make(revision);
  const http = () => ({ url: new URL(target), headers: { Authorization: `Bearer ${rest[0]}` } });
  await connect(way === 'http' ? http() : { command: target, args: rest });
  const did = action === 'tour' ? await tour(client, skills) : await watch(changed, action);
  console.log(JSON.stringify(did));
  await client.close();
}

/** Uses all that there is, as a host does. */
async function tour(client, skills) {
  const call = (name, args) => client.callTool({ name, arguments: args });
  const refusal = (asked) => asked.then(() => null, (error) => error.code);
  const { tools } = await client.listTools();
  const found = await call('find_skills', { query: 'release a version' });
  const { prompts } = await client.listPrompts();
  const prompt = await client.getPrompt({ name: 'release', arguments: { where: 'staging', version: '2' } });
  const completed = await client.complete({
    ref: { type: 'ref/prompt', name: 'release' },
    argument: { name: 'where', value: 's' },
  });
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  const read = async (uri) => (await client.readResource({ uri })).contents[0];
  return {
    server: client.getServerVersion().name,
    instructions: client.getInstructions(),
    tools: tools.map((it) => it.name),
    found: found.structuredContent,
    used: (await call('use_skill', { name: 'release' })).content[0].text,
    file: (await call('read_skill_file', { name: 'release', path: 'notes.md' })).content[0].text,
    wrong: (await call('use_skill', { name: 'nothing' })).isError,
    no_tool: await refusal(call('fly', {})),
    prompts: prompts.map((it) => it.name),
    prompt: prompt.messages[0].content.text,
    completed: completed.completion.values,
    resources: resources.map((it) => it.uri),
    templates: resourceTemplates.map((it) => it.uriTemplate),
    text: (await read('skill://project/release/notes.md')).text,
    blob: (await read('skill://project/release/icon.png')).blob,
    no_resource: await refusal(read('skill://project/release/nothing.md')),
    skills: await skills(),
  };
}

/** Asks to be told of changes, writes a skill, and waits to be told. */
async function watch(changed, path) {
  const { told } = await changed();
  writeFileSync(path, '---\nname: tidy\ndescription: Tidies up.\n---\n');
  return { changed: await told };
}
