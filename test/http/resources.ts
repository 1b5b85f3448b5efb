import assert from 'node:assert/strict';
import { eventually } from '../support/eventually.ts';
import { metaRequest } from './provider-callbacks.ts';
import { inFuture, type Organization } from './service.ts';

/** Values of a path's parameters: the ids of one resource of an organization. */
export type Ids = Readonly<Record<string, string>>;
type Json = Record<string, unknown>;

let count = 0;

async function create(organization: Organization, path: string, json?: Json): Promise<Json & { id: string }> {
  const answer = await organization.call('POST', path, json && { json });
  assert.ok(answer.status >= 200 && answer.status < 300, `POST ${path}: ${answer.text}`);
  return answer.body as Json & { id: string };
}

/** Connects a new chat-app number, of a country from which no test takes a number by name. */
export async function connectNumber(organization: Organization): Promise<{ id: string; number: string }> {
  const number = `+4479${String(++count).padStart(8, '0')}`;
  const { id } = await create(organization, '/v1/chatapp/numbers', { number, provider: 'twilio', auth_token: 'token' });
  return { id, number };
}

/** Puts a new address on the organization's suppression list. */
export async function suppressAddress(organization: Organization): Promise<{ id: string; email: string }> {
  const email = `suppressed${++count}@example.net`;
  const { suppressions } = await create(organization, '/v1/suppressions', { emails: [email] });
  const [entry] = suppressions as { id: string; email: string }[];
  assert.ok(entry, 'the list has the address');
  return entry;
}

interface ReceivedImage {
  readonly messageId: string;
  readonly media: { readonly url: string };
}

/** A user sends an image to a new number of Meta. */
async function receiveImage(organization: Organization): Promise<void> {
  const id = String(++count);
  const fields = { number: `+4478${id.padStart(8, '0')}`, phone_number_id: `received-${id}`, access_token: 'token' };
  await create(organization, '/v1/chatapp/numbers', { provider: 'meta', ...fields });
  const message = { from: '14165550123', id: `wamid.${id}`, timestamp: '1773000000', type: 'image', image: { id } };
  const value = { metadata: { phone_number_id: fields.phone_number_id }, messages: [message] };
  const request = metaRequest(JSON.stringify({ entry: [{ changes: [{ field: 'messages', value }] }] }));
  const answer = await organization.call('POST', '/callbacks/meta', request);
  assert.equal(answer.status, 200, answer.text);
}

/** Creates a new resource of each kind, by the prefix of the paths that name it; the longest prefix counts. */
export const RESOURCES: Readonly<Record<string, (organization: Organization) => Promise<Ids>>> = {
  '/v1/emails/:id': async (organization) => {
    const attachments = [{ filename: `file${++count}.txt`, content: 'SGVsbG8=' }];
    const tags = [{ name: 'of', value: organization.id }];
    const id = await organization.sent({ scheduled_at: inFuture({ days: 1 }), attachments, tags });
    const { attachments: stored } = await organization.email(id);
    return { id, attachmentId: (stored as { id: string }[])[0]?.id ?? '' };
  },
  // The content of a canceled email can be erased.
  '/v1/emails/:id/content': async (organization) => {
    const id = await organization.sent({ scheduled_at: inFuture({ days: 1 }) });
    await create(organization, `/v1/emails/${id}/cancel`);
    return { id };
  },
  '/v1/emails/batch/:id': async (organization) => {
    const emails = [organization.mail({ scheduled_at: inFuture({ days: 1 }) })];
    return { id: (await create(organization, '/v1/emails/batch', { emails })).id };
  },
  '/v1/chatapp/:id': async (organization) => {
    const { number: from } = await connectNumber(organization);
    const message = { from, to: '+14165550123', text: 'Hi.', scheduled_at: inFuture({ days: 1 }) };
    return { id: (await create(organization, '/v1/chatapp', message)).id };
  },
  '/v1/chatapp/:id/content': async (organization) => {
    const { number: from } = await connectNumber(organization);
    const message = { from, to: '+14165550123', text: 'Hi.', scheduled_at: inFuture({ days: 1 }) };
    const { id } = await create(organization, '/v1/chatapp', message);
    await create(organization, `/v1/chatapp/${id}/cancel`);
    return { id };
  },
  '/v1/chatapp/received/:id': async (organization) => {
    const { id: webhookId } = await create(organization, '/v1/webhooks', { url: 'https://example.com/hook' });
    await receiveImage(organization);
    const deliveries = await organization.call('GET', `/v1/webhooks/${webhookId}/deliveries`);
    const [delivery] = (deliveries.body as { deliveries: { id: string }[] }).deliveries;
    const answer = await organization.call('GET', `/v1/webhooks/${webhookId}/deliveries/${delivery?.id ?? ''}`);
    const { data } = (answer.body as { payload: { data: ReceivedImage } }).payload;
    return { id: data.messageId, signature: new URL(data.media.url).search };
  },
  '/v1/chatapp/numbers/:id': async (organization) => ({ id: (await connectNumber(organization)).id }),
  '/v1/sms/:id': async (organization) => {
    await organization.addSender(`+4476${String(++count).padStart(8, '0')}`);
    const message = { to: '+14165550123', text: 'Hi.', scheduled_at: inFuture({ days: 1 }) };
    return { id: (await create(organization, '/v1/sms', message)).id };
  },
  '/v1/sms/:id/content': async (organization) => {
    await organization.addSender(`+4475${String(++count).padStart(8, '0')}`);
    const message = { to: '+14165550123', text: 'Hi.', scheduled_at: inFuture({ days: 1 }) };
    const { id } = await create(organization, '/v1/sms', message);
    await create(organization, `/v1/sms/${id}/cancel`);
    return { id };
  },
  '/v1/sms/senders/:id': async (organization) => {
    return { id: (await organization.addSender(`+4477${String(++count).padStart(8, '0')}`)).id };
  },
  '/v1/domains/:id': async (organization) => {
    return { id: (await create(organization, '/v1/domains', { name: `d${++count}.example.org` })).id };
  },
  '/v1/suppressions/:idOrEmail': async (organization) => ({ idOrEmail: (await suppressAddress(organization)).id }),
  '/v1/webhooks/:id': async (organization) => {
    const { id } = await create(organization, '/v1/webhooks', { url: 'https://example.com/hook' });
    return { id, deliveryId: (await create(organization, `/v1/webhooks/${id}/test`)).id };
  },
  '/v1/keys/:id': async (organization) => ({
    id: (await create(organization, '/v1/keys', { preset: 'read_only' })).id,
  }),
  // The latest request in the log, which is written in the background. It has no path of its own; lists look for it.
  '/v1/requests/:id': async (organization) => {
    let id: string | undefined;
    await eventually('a request is in the log', async () => {
      const { body } = await organization.call('GET', '/v1/requests?limit=1');
      id = (body as { requests: { id: string }[] }).requests[0]?.id;
      return id !== undefined;
    });
    return { id: id ?? '' };
  },
};

/** A path of the API description with ids in it. */
export function fillPath(path: string, ids: Ids): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'absent');
}

/** @param path of the route table with `:id`, or of the API description with `{id}` */
export function resourceOf(path: string): ((organization: Organization) => Promise<Ids>) | undefined {
  const route = path.replace(/\{(\w+)\}/g, ':$1');
  const fitting = Object.keys(RESOURCES).filter((start) => route === start || route.startsWith(`${start}/`));
  return RESOURCES[fitting.sort((a, b) => b.length - a.length)[0] ?? ''];
}
