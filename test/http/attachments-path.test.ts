import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { canary, names, REACHABLE, site } from '../public-fetch/web.ts';
import { makeWithFiles } from '../../src/intake/attachments.ts';
import { makePublicFetch } from '../../src/public-fetch/fetch.ts';
import { diskStore } from '../../src/store/files/disk.ts';
import { allIds, contentOf } from '../store/files/store-contract.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folder.ts';
import { lived } from '../support/lived.ts';
import { assertRefused, type Organization, type Service, startService } from './service.ts';

const MB = 1_048_576;

let service: Service;
let org: Organization;
before(async () => {
  service = await startService();
  org = await service.organization();
});
after(() => service.close());

const at = (path: string, filename = 'a.pdf') => ({ filename, path });

/** The request is refused for a file, and nothing of it is kept. */
async function refuses(attachments: unknown[], param: string, says: string): Promise<void> {
  const before = await allIds(service.files);
  assertRefused(await org.send({ attachments }), 422, 'invalid_attachment', param, says);
  assert.deepEqual(await allIds(service.files), before);
}

it('a path is fetched once, while the request runs, and kept', async (t) => {
  const web = await site(t, ({ url }, response) => response.end(`this is ${url}`));
  const attachments = [at(`${web.url}/a?b=c`), { filename: 'b.txt', content: 'YQ==' }, at(`${web.url}/c`, 'c.csv')];
  const id = await org.sent({ attachments });
  assert.deepEqual(web.requests.map(({ url }) => url).sort(), ['/a?b=c', '/c']);
  const email = (await org.email(id)) as { attachments: { id: string; filename: string; content_type: string }[] };
  const contents = await Promise.all(email.attachments.map((each) => contentOf(service.files, each.id)));
  assert.deepEqual(contents.map(String), ['this is /a?b=c', 'a', 'this is /c']);
  assert.deepEqual(
    email.attachments.map((each) => [each.filename, each.content_type]),
    [
      ['a.pdf', 'application/pdf'],
      ['b.txt', 'text/plain'],
      ['c.csv', 'text/csv'],
    ],
  );
  assert.ok(!JSON.stringify(email).includes(REACHABLE), 'nobody is shown where it came from');
});

it('a path that cannot be fetched refuses the request, and the message names the file', async (t) => {
  const seen = await canary(t);
  const web = await site(t, ({ url }, response) => response.writeHead(url === '/ok' ? 200 : 404).end());
  const gone = [at(`${web.url}/ok`, 'here.pdf'), at(`${web.url}/x`, 'gone.pdf')];
  await refuses(gone, 'attachments.1.path', '"gone.pdf" cannot be fetched: its server answers 404');
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '2130706433', '[::ffff:127.0.0.1]', '0', '169.254.169.254']) {
    const says = '"a.pdf" cannot be fetched: its host cannot be found on the public internet';
    await refuses([at(`http://${host}:${seen.port}/`)], 'attachments.0.path', says);
  }
  await refuses(
    [at(`http://${REACHABLE}:5432/`)],
    'attachments.0.path',
    '"a.pdf" cannot be fetched: its port 5432 is not one of web servers',
  );
  assert.equal(seen.connections, 0);
});

it('a path that is no http or https URL cannot be fetched', async () => {
  for (const path of ['', 'x', '//example.com/a', '/etc/passwd', 'http://', 'http://a b/']) {
    await refuses([at(path)], 'attachments.0.path', '"a.pdf" cannot be fetched: it is not a URL');
  }
  for (const path of ['ftp://example.com/a', 'file:///etc/passwd', 'data:,x', 'gopher://example.com/']) {
    await refuses([at(path)], 'attachments.0.path', '"a.pdf" cannot be fetched: it is not an http or https URL');
  }
});

it('what a path leads to is looked at as what is given inline', async (t) => {
  const web = await site(t, (_, response) => response.end('MZ'));
  await refuses([at(web.url)], 'attachments.0.path', '"a.pdf" holds a program, whatever its name');
  await refuses([at(web.url, 'a.exe')], 'attachments.0.filename', '"a.exe" is of a blocked type');
  assert.equal(web.requests.length, 1);
});

it('the 30 MB are of all files together, fetched and given', async (t) => {
  const web = await site(t, ({ url = '' }, response) => response.end(Buffer.alloc(Number(url.slice(1)))));
  const inline = { filename: 'inline.txt', content: Buffer.alloc(10 * MB).toString('base64') };
  await org.sent({ attachments: [inline, at(`${web.url}/${10 * MB}`), at(`${web.url}/${10 * MB}`)] });
  await refuses(
    [inline, at(`${web.url}/${20 * MB + 1}`, 'big.pdf')],
    'attachments.1.path',
    '"big.pdf" cannot be fetched: it is larger than what may still be attached',
  );
});

it('an inline file that is no file is told before anything is fetched', async (t) => {
  const web = await site(t, (_, response) => response.end());
  await refuses([at(web.url), { filename: 'b.txt', content: '?' }], 'attachments.1.content', '"b.txt" is not base64');
  assert.equal(web.requests.length, 0);
});

it('the first path that fails ends the others', async (t) => {
  const hangs = await site(t, () => undefined);
  const fails = await site(t, (_, response) => response.writeHead(500).end());
  await refuses(
    [at(hangs.url, 'slow.pdf'), at(fails.url, 'bad.pdf')],
    'attachments.1.path',
    '"bad.pdf" cannot be fetched: its server answers 500',
  );
});

it('a path costs at most the time that a fetch may take, however many there are', async (t) => {
  const hangs = await site(t, () => undefined);
  const { resolve } = names({});
  const store = diskStore(await temporaryFolder(t));
  const hurried = makePublicFetch({ allowedCidrs: [REACHABLE], resolve }, 200);
  const withFiles = makeWithFiles({ pool: service.pool, files: store, fetchPublic: hurried, maxStoredBytes: 0 });
  const path = { path: hangs.url, content: null, content_type: null, content_id: null };
  const began = lived();
  await assert.rejects(
    withFiles(
      {
        orgId: 'org_none',
        requests: Array.from({ length: 20 }, (_, i) => ({ ...path, filename: `${i}.pdf` })),
        allowance: 1,
        admit: async () => undefined,
      },
      async () => undefined,
    ),
    /cannot be fetched: it takes longer than 0.2 seconds/,
  );
  assert.ok(lived() - began < 20 * 200, 'one after the other they would take twenty times as long');
});

it('downloads of one organization that never end leave memory for those of others', async (t) => {
  const other = await service.organization();
  const file = Buffer.alloc(29 * MB, 'a');
  // All but the last byte, which never comes.
  const stalls = await site(t, (_, response) => {
    response.writeHead(200, { 'content-length': file.length + 1 });
    response.write(file);
  });
  const web = await site(t, (_, response) => response.end(Buffer.alloc(MB, 'b')));
  const stalled = Array.from({ length: 6 }, () => org.send({ attachments: [at(stalls.url)] }));
  const arrived = () => [...stalls.open].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
  await eventually('they hold what they may', () => stalls.open.size === 6 && arrived() > 58 * MB);
  const answer = await other.send({ attachments: [at(web.url)] });
  assert.equal(answer.status, 202, answer.text);
  const answers = await Promise.all(stalled);
  for (const each of answers) {
    if (each.status === 503) {
      assertRefused(each, 503, 'unavailable');
      assert.equal(each.headers['retry-after'], '1');
    } else assertRefused(each, 422, 'invalid_attachment', 'attachments.0.path');
  }
  assert.ok(
    answers.some(({ status }) => status === 503),
    'those that waited for memory are worth trying again',
  );
});
