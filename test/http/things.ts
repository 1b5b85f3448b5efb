import assert from 'node:assert/strict';
import { inFuture, type Organization } from './service.ts';

/** What `:name` stands for: the id of something that an organization has. */
export type Ids = Readonly<Record<string, string>>;
type Json = Record<string, unknown>;

let count = 0;

async function made(organization: Organization, path: string, json?: Json): Promise<Json & { id: string }> {
  const answer = await organization.call('POST', path, json && { json });
  assert.ok(answer.status >= 200 && answer.status < 300, `POST ${path}: ${answer.text}`);
  return answer.body as Json & { id: string };
}

/** A chat-app number of its own, of a country from which no test takes one by name. */
export async function connected(organization: Organization): Promise<{ id: string; number: string }> {
  const number = `+4479${String(++count).padStart(8, '0')}`;
  const { id } = await made(organization, '/v1/chatapp/numbers', { number, provider: 'twilio', auth_token: 'token' });
  return { id, number };
}

/** An address on its suppression list. */
export async function suppressed(organization: Organization): Promise<{ id: string; email: string }> {
  const email = `suppressed${++count}@example.net`;
  const { suppressions } = await made(organization, '/v1/suppressions', { emails: [email] });
  const [entry] = suppressions as { id: string; email: string }[];
  assert.ok(entry, 'the list has the address');
  return entry;
}

/** Makes something new of each kind, by the beginning of the paths that name it; the longest that fits counts. */
export const THINGS: Readonly<Record<string, (organization: Organization) => Promise<Ids>>> = {
  '/v1/emails/:id': async (organization) => {
    const attachments = [{ filename: `file${++count}.txt`, content: 'SGVsbG8=' }];
    const tags = [{ name: 'of', value: organization.id }];
    const id = await organization.sent({ scheduled_at: inFuture({ days: 1 }), attachments, tags });
    const { attachments: kept } = await organization.email(id);
    return { id, attachmentId: (kept as { id: string }[])[0]?.id ?? '' };
  },
  // Its content can be erased: it is not to be sent any more.
  '/v1/emails/:id/content': async (organization) => {
    const id = await organization.sent({ scheduled_at: inFuture({ days: 1 }) });
    await made(organization, `/v1/emails/${id}/cancel`);
    return { id };
  },
  '/v1/emails/batch/:id': async (organization) => {
    const emails = [organization.mail({ scheduled_at: inFuture({ days: 1 }) })];
    return { id: (await made(organization, '/v1/emails/batch', { emails })).id };
  },
  '/v1/chatapp/:id': async (organization) => {
    const { number: from } = await connected(organization);
    return { id: (await made(organization, '/v1/chatapp', { from, to: '+14165550123', text: 'Hi.' })).id };
  },
  '/v1/chatapp/numbers/:id': async (organization) => ({ id: (await connected(organization)).id }),
  '/v1/domains/:id': async (organization) => {
    return { id: (await made(organization, '/v1/domains', { name: `d${++count}.example.org` })).id };
  },
  '/v1/suppressions/:idOrEmail': async (organization) => ({ idOrEmail: (await suppressed(organization)).id }),
  '/v1/webhooks/:id': async (organization) => {
    const { id } = await made(organization, '/v1/webhooks', { url: 'https://example.com/hook' });
    return { id, deliveryId: (await made(organization, `/v1/webhooks/${id}/test`)).id };
  },
  '/v1/keys/:id': async (organization) => ({ id: (await made(organization, '/v1/keys', { preset: 'read_only' })).id }),
};

/** @param path as the route table has it, with `:id` */
export function thingOf(path: string): ((organization: Organization) => Promise<Ids>) | undefined {
  const fitting = Object.keys(THINGS).filter((start) => path === start || path.startsWith(`${start}/`));
  return THINGS[fitting.sort((a, b) => b.length - a.length)[0] ?? ''];
}
