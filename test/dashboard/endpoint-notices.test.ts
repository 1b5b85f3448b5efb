import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { deliverTo, emailsTo, pathIn, startWithAccountEmails } from './account-mail.ts';
import { signedIn } from './visitor.ts';

const { service, operator } = await startWithAccountEmails();
after(() => service.close());

describe('the owners of an organization', () => {
  it('get an email when a key or a member sends events to a new URL, and viewers do not', async () => {
    const ours = await service.organization('Ours');
    const [ada, viewer] = [await signedIn(service, ours.id), await signedIn(service, ours.id, 'viewer')];
    const created = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook?secret' } });
    const { id } = created.body as { id: string };
    const email = await deliverTo(service, operator.id, ada.email);
    assert.equal(email.subject, 'New webhook URL of Ours on Sendwright');
    assert.ok(email.text?.includes(`The API key key_${ours.key.split('_')[2]} set the URL`), email.text ?? '');
    assert.ok(email.text?.includes('sent to example.com.') && !email.text.includes('secret'), email.text ?? '');
    assert.equal(pathIn(email), `/dashboard/webhooks/${id}`);

    await ours.call('PATCH', `/v1/webhooks/${id}`, { json: { events: ['email.sent'] } });
    assert.equal((await emailsTo(service, ada.email)).length, 1, 'the URL is the same');
    await ours.call('PATCH', `/v1/webhooks/${id}`, { json: { url: 'https://other.example.com/' } });
    assert.equal((await emailsTo(service, ada.email)).length, 2);
    assert.equal((await ada.post('/dashboard/webhooks/new', { url: 'https://third.example.com/' })).status, 200);
    assert.ok((await deliverTo(service, operator.id, ada.email)).text?.includes(`${ada.email} set the URL`));
    for (let i = 0; i < 5; i++) await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/' } });
    assert.equal((await emailsTo(service, ada.email)).length, 5, 'at most 5 a day');
    assert.deepEqual(await emailsTo(service, viewer.email), []);
  });

  it('get no email in the organization that sends it, whose endpoint would receive its events', async () => {
    const ada = await signedIn(service, operator.id);
    const answer = await operator.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
    assert.equal(answer.status, 201);
    assert.deepEqual(await emailsTo(service, ada.email), []);
  });

  it('get no email if it cannot be sent, and the endpoint is created', async () => {
    const ours = await service.organization('Ours');
    const ada = await signedIn(service, ours.id);
    await service.pool.query(`UPDATE domains SET status = 'pending', trusted = false WHERE org_id = $1`, [operator.id]);
    const answer = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
    await service.pool.query(`UPDATE domains SET status = 'verified' WHERE org_id = $1`, [operator.id]);
    assert.equal(answer.status, 201);
    assert.deepEqual(await emailsTo(service, ada.email), []);
  });
});
