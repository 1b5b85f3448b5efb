import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useService } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';
import { type Page, signedIn, textOf, visitor } from './visitor.ts';

const PATH = '/dashboard/requests';
const service = await useService({ logsRequests: true });
const ours = await service.organization('Ours');
const viewer = await signedIn(service, ours.id, 'viewer');

const rowsOf = ({ html }: Page) => [...html.matchAll(/<tr>[\s\S]*?<\/tr>/g)].map(([row]) => textOf(row)).slice(1);

/** Opens the page until a request is listed. */
async function opened(query: string, expected: RegExp): Promise<Page> {
  let found: Page | undefined;
  await eventually(`${query} shows ${expected}`, async () => {
    found = await viewer.get(`${PATH}${query}`);
    return expected.test(rowsOf(found).join());
  });
  return found as Page;
}

describe('API requests', () => {
  it('states what will appear while there are none', async () => {
    const page = await viewer.get(PATH);
    assert.match(textOf(page.html), /No requests yet .* They are kept for 7 days\./);
  });

  it('refuses filters with NUL, as other pages do', async () => {
    for (const path of [`${PATH}?path=`, `${PATH}?key=`, `${PATH}?request_id=`, '/dashboard/emails?batch_id=']) {
      assert.equal((await viewer.get(`${path}%00`)).status, 422, path);
    }
    const chosen = await viewer.post('/dashboard/organization', { organization: '\0' });
    assert.equal(chosen.status, 422);
  });

  it('lists requests with status, error code, duration and the name of their key, and filters them', async () => {
    const made = await ours.call('POST', '/v1/keys', { json: { preset: 'full_access', name: 'Shop <1>' } });
    const { id: keyId, api_key: key } = made.body as { id: string; api_key: string };
    await service.call('GET', '/v1/domains', { key });
    await service.call('POST', '/v1/emails', { key, json: {} });
    const page = await opened('?status=4xx', /POST \/v1\/emails 422 validation error \d+ ms Shop <1>/);
    assert.equal(rowsOf(page).length, 1);
    assert.ok(!page.html.includes('<1>'), 'a name is escaped');
    assert.ok(page.html.includes(`?key=${keyId}`), 'a key leads to its requests');
    assert.equal(rowsOf(await viewer.get(`${PATH}?key=${keyId}`)).length, 2);
    await ours.call('DELETE', `/v1/keys/${keyId}`);
    assert.match(rowsOf(await viewer.get(`${PATH}?key=${keyId}`)).join(), /Shop <1>/, 'also after it was revoked');
    assert.match(rowsOf(await viewer.get(`${PATH}?path=/v1/domains`)).join(), /GET \/v1\/domains 200/);
    assert.match(textOf((await viewer.get(`${PATH}?key=key_none`)).html), /No requests match these filters/);
  });

  it('refuses a status that is none', async () => {
    const page = await viewer.get(`${PATH}?status=many`);
    assert.equal(page.status, 422);
    assert.match(textOf(page.html), /must be a status such as 404/);
    assert.doesNotMatch(textOf(page.html), /No requests match/);
  });

  it('is where the request id of an error page leads, for members of the organization only', async () => {
    await service.pool.query('ALTER TABLE batches RENAME TO batches_away');
    const broken = await viewer.get('/dashboard/batches');
    await service.pool.query('ALTER TABLE batches_away RENAME TO batches');
    assert.equal(broken.status, 500);
    const [, link = ''] = /href="(\/dashboard\/requests\?[^"]+)"/.exec(broken.html) ?? [];
    const query = link.slice(PATH.length);
    assert.equal(query, `?request_id=${String(broken.headers['x-request-id'])}`);
    await opened(query, /GET \/dashboard\/batches 500 internal error \d+ ms dashboard/);
    const visits = await viewer.get(`${PATH}?path=${PATH}`);
    assert.match(textOf(visits.html), /No requests match these filters/, 'pages that were shown are not in the log');

    const outsider = await signedIn(service, (await service.organization('Theirs')).id);
    assert.match(textOf((await outsider.get(link)).html), /No requests match these filters/);
    assert.equal((await visitor(service).get(link)).status, 303);
  });
});
