// A client on version 2 of the official SDK for TypeScript, which knows the Skills extension.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { run } from './tour.mjs';

await run((revision) => {
  const mode = revision === '2026-07-28' ? 'auto' : 'legacy';
  const client = new Client({ name: 'specs', version: '1' }, { versionNegotiation: { mode } });
  async function connect({ url, headers, ...command }) {
    const http = () => new StreamableHTTPClientTransport(url, { requestInit: { headers } });
    await client.connect(url ? http() : new StdioClientTransport(command));
    const spoken = client.getNegotiatedProtocolVersion();
    if (spoken !== revision) throw new Error(`they speak ${spoken}`);
  }
  // It refuses an entry that is not as the extension has it, and a file that is not as its entry says.
  async function skills() {
    const host = new SkillsClient(client);
    if (!host.supported || !host.directoryRead) throw new Error('there is no extension');
    const { skills } = await host.list();
    for (const skill of skills) {
      for (const { uri } of (await host.get(skill.uri)).skill.resources) {
        const file = await host.read(skill, uri);
        if (!file.verified) throw new Error(`${uri} is not verified`);
      }
      await host.readDirectory(skill.uri.replace(/\/SKILL\.md$/, ''));
    }
    return skills.map((it) => it.uri);
  }
  async function changed() {
    const told = new Promise((resolve) => {
      client.setNotificationHandler('notifications/prompts/list_changed', () => resolve(true));
    });
    if (mode === 'auto') await client.listen({ promptsListChanged: true });
    return { told };
  }
  return { client, connect, skills, changed };
});
