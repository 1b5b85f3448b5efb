import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { it } from 'node:test';
import { startPrivateServer, REACHABLE, site } from '../public-fetch/web.ts';
import { allIds, contentOf } from '../store/files/store-contract.ts';
import { eventually } from '../support/eventually.ts';
import { assertRefused, useService } from './service.ts';

const MB = 1_048_576;

const service = await useService();
const org = await service.organization();

const at = (path: string, filename = 'a.pdf') => ({ filename, path });

/** The request is refused for a file and stores nothing. */
async function refuses(attachments: unknown[], param: string, message: string): Promise<void> {
  const before = await allIds(service.files);
  assertRefused(await org.send({ attachments }), 422, 'invalid_attachment', param, message);
  assert.deepEqual(await allIds(service.files), before);
}

it('fetches a path once, while the request runs, and stores the content', async (t) => {
  const web = await site(t, ({ url }, response) => response.end(`this is ${url}`));
  const attachments = [at(`${web.url}/a?b=c`), { filename: 'b.txt', content: 'YQ==' }, at(`${web.url}/c`, 'c.csv')];
  const email = await org.email(await org.sent({ attachments }));
  assert.deepEqual(web.requests.map(({ url }) => url).sort(), ['/a?b=c', '/c']);
  const files = email['attachments'] as { id: string; filename: string; content_type: string }[];
  const rows = files.map(async ({ id, filename, content_type: type }) => {
    return [filename, type, String(await contentOf(service.files, id))];
  });
  assert.deepEqual(await Promise.all(rows), [
    ['a.pdf', 'application/pdf', 'this is /a?b=c'],
    ['b.txt', 'text/plain', 'a'],
    ['c.csv', 'text/csv', 'this is /c'],
  ]);
  assert.ok(!JSON.stringify(email).includes(REACHABLE), 'the email does not contain the URL');
});

it('refuses a path that cannot be fetched, and names the file', async (t) => {
  const reached = await startPrivateServer(t);
  const web = await site(t, ({ url }, response) => response.writeHead(url === '/ok' ? 200 : 404).end());
  const gone = [at(`${web.url}/ok`, 'here.pdf'), at(`${web.url}/x`, 'gone.pdf')];
  await refuses(gone, 'attachments.1.path', '"gone.pdf" cannot be fetched: its server answers 404');
  for (const [path, message] of [
    [`http://127.0.0.1:${reached.port}/`, 'its host cannot be found on the public internet'],
    [`http://${REACHABLE}:5432/`, 'its port 5432 is not one of web servers'],
    ['file:///etc/passwd', 'it is not an http or https URL'],
  ] as const) {
    await refuses([at(path)], 'attachments.0.path', `"a.pdf" cannot be fetched: ${message}`);
  }
  assert.equal(reached.connections, 0);
});

it('checks fetched files like inline files', async (t) => {
  const web = await site(t, (_, response) => response.end('MZ'));
  await refuses([at(web.url)], 'attachments.0.path', '"a.pdf" contains a program, regardless of its name');
  await refuses([at(web.url, 'a.exe')], 'attachments.0.filename', '"a.exe" is of a blocked type');
  assert.equal(web.requests.length, 1);
});

it('limits inline and fetched files to 30 MB together', async (t) => {
  const web = await site(t, ({ url = '' }, response) => response.end(Buffer.alloc(Number(url.slice(1)))));
  const inline = { filename: 'inline.txt', content: Buffer.alloc(10 * MB).toString('base64') };
  await org.sent({ attachments: [inline, at(`${web.url}/${10 * MB}`), at(`${web.url}/${10 * MB}`)] });
  const message = '"big.pdf" cannot be fetched: it is larger than what may still be attached';
  await refuses([inline, at(`${web.url}/${20 * MB + 1}`, 'big.pdf')], 'attachments.1.path', message);
});

it('checks inline files before it fetches anything', async (t) => {
  const web = await site(t, (_, response) => response.end());
  await refuses([at(web.url), { filename: 'b.txt', content: '?' }], 'attachments.1.content', '"b.txt" is not base64');
  assert.equal(web.requests.length, 0);
});

it('aborts the other fetches when one fails', async (t) => {
  const hangs = await site(t, () => undefined);
  const fails = await site(t, (_, response) => response.writeHead(500).end());
  const files = [at(hangs.url, 'slow.pdf'), at(fails.url, 'bad.pdf')];
  await refuses(files, 'attachments.1.path', '"bad.pdf" cannot be fetched: its server answers 500');
});

it('fetches the paths of an email concurrently', async (t) => {
  const waiting: ServerResponse[] = [];
  const web = await site(t, (_, response) => {
    // No request is answered before all have arrived.
    if (waiting.push(response) === 5) for (const each of waiting) each.end('a file');
  });
  await org.sent({ attachments: Array.from({ length: 5 }, () => at(web.url)) });
});

it('leaves memory for other organizations while downloads of one organization stall', async (t) => {
  const other = await service.organization();
  const file = Buffer.alloc(29 * MB, 'a');
  // The last byte is never sent.
  const stalls = await site(t, (_, response) => {
    response.writeHead(200, { 'content-length': file.length + 1 });
    response.write(file);
  });
  const web = await site(t, (_, response) => response.end(Buffer.alloc(MB, 'b')));
  const stalled = Array.from({ length: 6 }, () => org.send({ attachments: [at(stalls.url)] }));
  const arrived = () => [...stalls.open].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
  await eventually('the downloads use all memory', () => stalls.open.size === 6 && arrived() > 58 * MB);
  const answer = await other.send({ attachments: [at(web.url)] });
  assert.equal(answer.status, 202, answer.text);
  const answers = await Promise.all(stalled);
  // A download that waited for memory can be retried.
  const waited = answers.filter(({ status }) => status === 503);
  assert.ok(waited.length > 0);
  for (const each of waited) assert.equal(each.headers['retry-after'], '1');
  for (const each of answers) {
    if (!waited.includes(each)) assertRefused(each, 422, 'invalid_attachment', 'attachments.0.path');
  }
});
