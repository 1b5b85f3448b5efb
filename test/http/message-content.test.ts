import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { expireBodies } from '../../src/upkeep/body-retention.ts';
import { projectMessages } from '../../src/projection/messages.ts';
import { connectNumber } from './resources.ts';
import { assertRefused, bodyOf, inFuture, useService } from './service.ts';

const TO = '+14165550123';
const TEXT = 'canary text of a message';

const service = await useService();
const [ours, theirs] = [await service.organization(), await service.organization()];
await ours.addSender('+12025550142');
const { number } = await connectNumber(ours);

type Json = Record<string, unknown>;

const template = { name: 'canaryname', language: 'en' };
const KINDS: Readonly<Record<'sms' | 'chatapp', Json>> = {
  sms: { to: TO, text: TEXT },
  chatapp: { to: TO, from: number, text: TEXT, fallback_template: template },
};

for (const [channel, fields] of Object.entries(KINDS)) {
  const path = `/v1/${channel}`;
  const accept = async (more: Json = {}) =>
    String(bodyOf(await ours.call('POST', path, { json: { ...fields, ...more } }), 202)['id']);
  const shown = async (id: string) => bodyOf(await ours.call('GET', `${path}/${id}`), 200);
  const erase = (id: string, by = ours) => by.call('DELETE', `${path}/${id}/content`);
  /** The columns of a message that hold its content. */
  const stored = async (id: string) => {
    const { rows } = await service.pool.query<Json>(
      `SELECT content, sealed_content, has_fallback FROM chat_messages WHERE id = $1`,
      [id],
    );
    return rows[0] ?? {};
  };
  const finish = (id: string) => projectMessages(service.pool, 'sent', [{ id, provider: 'twilio' }]);

  describe(`the content of a message (${channel})`, () => {
    it('is stored encrypted and returned as accepted', async () => {
      const id = await accept();
      const { content, sealed_content: sealed } = await stored(id);
      assert.equal(content, null);
      assert.ok(Buffer.isBuffer(sealed) && !sealed.includes('canary'), 'no part is readable');
      assert.equal((await shown(id))['text'], TEXT);
    });

    it('is returned from rows of before encryption', async () => {
      const id = await accept();
      const content = JSON.stringify({ text: TEXT, preview_url: false, template: null, image: null, document: null });
      await service.pool.query(`UPDATE chat_messages SET content = $2, sealed_content = NULL WHERE id = $1`, [
        id,
        content,
      ]);
      assert.equal((await shown(id))['text'], TEXT);
      await finish(id);
      assert.equal((await erase(id)).status, 204);
      assert.equal((await stored(id))['content'], null);
    });

    it('cannot be read in the row of another message', async () => {
      const [id, other] = [await accept(), await accept()];
      await service.pool.query(
        `UPDATE chat_messages SET sealed_content = (SELECT sealed_content FROM chat_messages WHERE id = $1) WHERE id = $2`,
        [id, other],
      );
      assert.equal((await ours.call('GET', `${path}/${other}`)).status, 500);
    });

    it('is erased once the message has ended, and the record stays', async () => {
      const id = await accept();
      await finish(id);
      const before = await shown(id);
      assert.deepEqual([(await erase(id)).status, (await erase(id)).status], [204, 204]);
      assert.deepEqual(await stored(id), { content: null, sealed_content: null, has_fallback: false });
      const rest = Object.fromEntries(Object.entries(before).filter(([name]) => name !== 'fallback_template'));
      assert.deepEqual(await shown(id), { ...rest, text: null });
    });

    it('is kept while the message is queued or scheduled', async () => {
      for (const more of [{}, { scheduled_at: inFuture({ hours: 1 }) }]) {
        const id = await accept(more);
        assertRefused(await erase(id), 409, 'conflict');
        assert.equal((await shown(id))['text'], TEXT);
      }
    });

    it('returns 404 for a message of another organization or channel', async () => {
      const id = await accept();
      await finish(id);
      assertRefused(await erase(id, theirs), 404, 'not_found');
      const other = channel === 'sms' ? 'chatapp' : 'sms';
      assertRefused(await ours.call('DELETE', `/v1/${other}/${id}/content`), 404, 'not_found');
      assert.equal((await shown(id))['text'], TEXT);
    });

    it('expires as the bodies of emails, but not before the message has ended', async () => {
      const [ended, open, fresh] = [await accept(), await accept(), await accept()];
      for (const id of [ended, fresh]) await finish(id);
      await service.pool.query(`UPDATE chat_messages SET created_at = now() - interval '8 days' WHERE id = ANY ($1)`, [
        [ended, open],
      ]);
      const expire = async () => {
        let from: string | null = null;
        do ({ next: from } = await expireBodies(service.pool, 7, from, 2));
        while (from !== null);
      };
      await expire();
      const texts = async () => Promise.all([ended, open, fresh].map(async (id) => (await shown(id))['text']));
      assert.deepEqual(await texts(), [null, TEXT, TEXT]);
      await finish(open);
      await service.pool.query(`UPDATE held_bodies SET look_at = now() - interval '1 second'`);
      await expire();
      assert.deepEqual(await texts(), [null, null, TEXT]);
    });
  });
}
