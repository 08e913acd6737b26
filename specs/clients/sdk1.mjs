// A client on version 1 of the official SDK for TypeScript.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { PromptListChangedNotificationSchema, ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { run } from './tour.mjs';

await run((revision) => {
  const client = new Client({ name: 'specs', version: '1' });
  async function connect({ url, headers, ...command }) {
    const http = () => new StreamableHTTPClientTransport(url, { requestInit: { headers } });
    const transport = url ? http() : new StdioClientTransport(command);
    const { setProtocolVersion } = transport;
    let spoken;
    transport.setProtocolVersion = (version) => {
      spoken = version;
      setProtocolVersion?.call(transport, version);
    };
    await client.connect(transport);
    if (spoken !== revision) throw new Error(`they speak ${spoken}`);
  }
  // It knows nothing of the extension, and can ask all the same.
  async function skills() {
    const { skills } = await client.request({ method: 'skills/list', params: {} }, ResultSchema);
    return skills.map((it) => it.uri);
  }
  async function changed() {
    const told = new Promise((resolve) => {
      client.setNotificationHandler(PromptListChangedNotificationSchema, () => resolve(true));
    });
    return { told };
  }
  return { client, connect, skills, changed };
});
