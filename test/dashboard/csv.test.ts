import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useService } from '../http/service.ts';
import { signedIn, textOf } from './visitor.ts';

const service = await useService();

test('downloads begin with a byte-order mark, with which suppressions can be imported again', async () => {
  const [ours, other] = [await service.organization(), await service.organization()];
  const [owner, importer] = [await signedIn(service, ours.id), await signedIn(service, other.id)];
  await ours.call('POST', '/v1/suppressions', { json: { email: 'zoe@example.com' } });
  const files = await Promise.all(
    ['emails', 'audit', 'suppressions'].map(async (list) => {
      const response = await fetch(`${service.url}/dashboard/${list}/download`, {
        headers: { cookie: owner.cookie() },
      });
      assert.equal(response.status, 200, list);
      // `response.text()` would remove the mark.
      return Buffer.from(await response.arrayBuffer());
    }),
  );
  for (const file of files) assert.equal(file.subarray(0, 3).toString('hex'), 'efbbbf');
  const added = await importer.change('/dashboard/suppressions/add', { addresses: String(files[2]) });
  assert.ok(textOf(added.html).includes('1 address was added.'), textOf(added.html));
  assert.ok((await importer.get('/dashboard/suppressions')).html.includes('zoe@example.com'));
});
