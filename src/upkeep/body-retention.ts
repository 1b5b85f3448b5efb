import { groupBy } from '../lib/group.ts';
import {
  eraseContents,
  holdBodies,
  listExpiring,
  nextExpiringOrganization,
  recordExpired,
  takeHeldBodies,
} from '../store/emails/content-erasure.ts';
import {
  eraseMessageContents,
  listExpiringMessages,
  recordExpiredMessages,
} from '../store/messages/content-erasure.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import type { UpkeepStep } from './task.ts';

/** The cursor of the first phase, which checks messages whose content were held back. */
const HELD = '~';
/** The prefix of a cursor if an organization before it has more expired messages: another pass over all of them follows. */
const AGAIN = '+';
/** A step visits organizations for this time. A run has 1,000 steps, and there may be more organizations. */
const STEP_MS = 5_000;

/**
 * Erases the content of messages that are older than their organization's retention, one step at a time. Messages that are not sent yet keep theirs and are checked again a day later.
 * @param from the cursor that the previous step returned, or null
 * @param limit the maximum number of emails, and of other messages, in a step
 */
export async function expireBodies(
  pool: Pool,
  defaultDays: number,
  from: string | null,
  limit: number,
): Promise<UpkeepStep> {
  const deadline = performance.now() + STEP_MS;
  let next: string | null = from ?? HELD;
  let done = 0;
  while (next !== null && done < limit && performance.now() < deadline) {
    const step: UpkeepStep =
      next === HELD
        ? await expireHeld(pool, defaultDays, limit - done)
        : await expireNextOrganization(pool, defaultDays, next, limit - done);
    next = step.next;
    done += step.done;
  }
  return { done, next };
}

/** Visits the first organization after `from`. A large one does not delay the others, which each pass visits once. */
async function expireNextOrganization(
  pool: Pool,
  defaultDays: number,
  from: string,
  limit: number,
): Promise<UpkeepStep> {
  return transaction(pool, async (client) => {
    const hasMore = from.startsWith(AGAIN);
    const organization = await nextExpiringOrganization(client, hasMore ? from.slice(AGAIN.length) : from, defaultDays);
    if (!organization) return { done: 0, next: hasMore ? '' : null };
    const [emails, messages] = await Promise.all([
      listExpiring(client, organization, limit),
      listExpiringMessages(client, organization, limit),
    ]);
    await expire(client, organization.id, [...emails, ...messages]);
    const [lastEmail, lastMessage] = [emails.at(-1), messages.at(-1)];
    if (lastEmail) await recordExpired(client, organization.id, lastEmail);
    if (lastMessage) await recordExpiredMessages(client, organization.id, lastMessage);
    const mayBeMore = emails.length === limit || messages.length === limit;
    return { done: emails.length + messages.length, next: (hasMore || mayBeMore ? AGAIN : '') + organization.id };
  });
}

async function expireHeld(pool: Pool, defaultDays: number, limit: number): Promise<UpkeepStep> {
  return transaction(pool, async (client) => {
    const held = await takeHeldBodies(client, defaultDays, limit);
    for (const [orgId, messages] of groupBy(held, ({ org_id }) => org_id)) await expire(client, orgId, messages);
    return { done: held.length, next: held.length === limit ? HELD : '' };
  });
}

async function expire(
  client: Db,
  orgId: string,
  messages: readonly { id: string; is_expired: boolean }[],
): Promise<void> {
  const expired = messages.filter(({ is_expired: isExpired }) => isExpired).map(({ id }) => id);
  const results = [
    ...(await eraseContents(client, orgId, expired.filter(isEmailId))),
    ...(await eraseMessageContents(
      client,
      orgId,
      expired.filter((id) => !isEmailId(id)),
    )),
  ];
  const open = results.filter(({ is_open: isOpen }) => isOpen).map(({ id }) => id);
  const early = messages.filter(({ is_expired: isExpired }) => !isExpired).map(({ id }) => id);
  await holdBodies(client, orgId, [...open, ...early]);
}

function isEmailId(id: string): boolean {
  return id.startsWith('em_');
}
