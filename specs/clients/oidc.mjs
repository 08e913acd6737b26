// A server on the official SDK that takes tokens of an `oidc-provider` in front of it; prints its URL.

import { createServer } from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import Provider from 'oidc-provider';

const [lifetime] = process.argv.slice(2).map(Number);
const http = createServer().listen(0, '127.0.0.1');
await new Promise((ready) => http.once('listening', ready));
const base = `http://127.0.0.1:${http.address().port}`;
const resource = `${base}/mcp`;

const provider = new Provider(base, {
    cookies: { keys: ['a key for tests'] },
    clients: [],
    scopes: ['openid', 'offline_access', 'read'],
    features: {
        devInteractions: { enabled: true },
        registration: { enabled: true },
        revocation: { enabled: true },
        deviceFlow: { enabled: true },
        resourceIndicators: {
            enabled: true,
            useGrantedResource: () => true,
            getResourceServerInfo: (context, asked) => {
                if (asked !== resource) throw new Error(`no tokens for ${asked}`);
                return { scope: 'read', audience: asked, accessTokenTTL: lifetime };
            },
        },
    },
    findAccount: (context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});

const verifier = {
    async verifyAccessToken(text) {
        const token = await provider.AccessToken.find(text);
        if (!token || token.aud !== resource) throw new InvalidTokenError('not a token for this server');
        return { token: text, clientId: token.clientId, scopes: [...token.scopes], expiresAt: token.exp };
    },
};

const app = express();
const metadata = '/.well-known/oauth-protected-resource/mcp';
app.get(metadata, (request, response) => {
    response.json({ resource, authorization_servers: [base], scopes_supported: ['read'] });
});
const guard = requireBearerAuth({ verifier, requiredScopes: ['read'], resourceMetadataUrl: base + metadata });
app.all('/mcp', guard, express.json(), async (request, response) => {
    const server = new McpServer({ name: 'guarded', version: '1.0.0' });
    server.registerTool('whoami', { description: 'Says who asks.' }, ({ authInfo }) => {
        return { content: [{ type: 'text', text: authInfo.clientId }] };
    });
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
});
app.use(provider.callback());
http.on('request', app);
console.log(resource);
