import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { request } from 'undici';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { type ApiProcess, startApi } from '../http/api-process.ts';
import { OWN_NAMES, PRIVATE_LITERALS } from '../public-fetch/private-hosts.ts';
import { startPrivateServer, REACHABLE, site } from '../public-fetch/web.ts';
import { connect } from '../store/chats.ts';
import { useDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';

/** The API as in production is asked to reach internal hosts. A listening canary gets no connection. */
const DOMAIN = 'acme.example';
const HOSTS = [...PRIVATE_LITERALS, ...OWN_NAMES];

const database = await useDatabase();
const { id: orgId, api_key: key } = await createOrganization(database.pool, 'Acme');
await registerDomainForOperator(database.pool, orgId, DOMAIN, true);

interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly param?: string;
}

async function post(api: ApiProcess, path: string, json: object): Promise<{ status: number; error: Refusal }> {
  const { statusCode, body } = await request(api.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(json),
  });
  const { error = { code: '', message: '' } } = (await body.json()) as { error?: Refusal };
  return { status: statusCode, error };
}

const withPath = (path: string) => ({
  from: `a@${DOMAIN}`,
  to: 'b@example.net',
  subject: 'Hello',
  text: 'Hi.',
  attachments: [{ filename: 'the file.pdf', path }],
});

const api = await startApi({ DATABASE_URL: database.url });
after(() => api.end());

describe('a URL of a caller', () => {
  it(`for an attachment reaches none of ${HOSTS.length} private hosts`, async (t) => {
    assert.ok(HOSTS.length >= 40, `${HOSTS.length} hosts`);
    const seen = await startPrivateServer(t);
    for (const host of HOSTS) {
      for (const url of [`http://${host}:${seen.port}/`, `https://user:pass@${host}:${seen.port}/x?y#z`]) {
        const { status, error } = await post(api, '/v1/emails', withPath(url));
        assert.deepEqual([status, error.code], [422, 'invalid_attachment'], `${url}: ${error.message}`);
        assert.match(error.message, /the file\.pdf/, url);
        assert.equal(seen.connections, 0, url);
      }
    }
    const { rows } = await database.pool.query('SELECT FROM emails');
    assert.equal(rows.length, 0, 'nothing is queued');
  });

  it('for a webhook endpoint or a document by chat may be none of them', async (t) => {
    const seen = await startPrivateServer(t);
    await connect(database.pool, orgId);
    for (const host of HOSTS) {
      const url = `https://${host}:${seen.port}/hook`;
      const hook = await post(api, '/v1/webhooks', { url });
      assert.deepEqual([hook.status, hook.error.code, hook.error.param], [422, 'validation_error', 'url'], url);
      const document = { link: url, filename: 'a.pdf' };
      const chat = await post(api, '/v1/chatapp', { to: '+14165550123', type: 'document', document });
      assert.deepEqual([chat.status, chat.error.code], [422, 'validation_error'], url);
    }
    assert.equal(seen.connections, 0);
  });
});

describe('a public site', () => {
  it('leads us to none of them by a redirect', async (t) => {
    const fetching = await startApi({
      DATABASE_URL: database.url,
      ATTACHMENT_ALLOW_CIDRS: REACHABLE,
      ATTACHMENT_STORE: `file:${await temporaryFolder(t)}`,
    });
    t.after(() => fetching.end());
    const seen = await startPrivateServer(t);
    const web = await site(t, ({ url = '' }, response) => {
      if (url === '/fine') return void response.end('fine');
      // A header contains bytes.
      response.writeHead(302, { location: Buffer.from(decodeURIComponent(url.slice(1))).toString('latin1') }).end();
    });
    assert.equal((await post(fetching, '/v1/emails', withPath(`${web.url}/fine`))).status, 202);
    const places = HOSTS.flatMap((host) => [`http://${host}:${seen.port}/`, `//${host}:${seen.port}/`]);
    for (const place of [...places, 'file:///etc/passwd', 'gopher://127.0.0.1/', 'data:,x', `ftp://127.0.0.1/`]) {
      const { status, error } = await post(fetching, '/v1/emails', withPath(`${web.url}/${encodeURIComponent(place)}`));
      assert.deepEqual([status, error.code], [422, 'invalid_attachment'], `${place}: ${error.message}`);
      assert.equal(seen.connections, 0, place);
    }
    assert.ok(web.requests.length > places.length, 'every redirect was requested');
  });
});
